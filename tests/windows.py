#!/usr/bin/env python3
"""windows.py MINIMIND.EXE WHEEL: runs the program for Windows under wine, and compares what it does with ./minimind of this machine;
and C programs with the library that the package for Python has. No Python for Windows can be had from Debian or PyPI.

What wine cannot show is in tools/windows/README.md. WINEPREFIX is build/wine unless it is set.
"""

import contextlib
import json
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import termios
import time
import unittest
import urllib.request
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOLDEN = ROOT / 'tests/golden'
NATIVE = ROOT / 'minimind'
API, API_TESTS = ROOT / 'runtime/api', ROOT / 'tests/runtime/api'
WHEEL = pathlib.Path(sys.argv.pop(2) if len(sys.argv) > 2 else next((ROOT / 'build/for/windows-x86_64/wheel').glob('*.whl')))
PROGRAM = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else ROOT / 'build/for/windows-x86_64/minimind.exe').resolve()
WINE = shutil.which('wine') or shutil.which('wine64') or '/usr/lib/wine/wine64'
ENVIRONMENT = {'WINEDEBUG': '-all', 'WINEPREFIX': str(ROOT / 'build/wine'), **os.environ, 'LC_ALL': 'C.UTF-8'}
SYSTEM_LIBRARIES = {'KERNEL32.dll', 'msvcrt.dll', 'WS2_32.dll', 'MSWSOCK.dll', 'ADVAPI32.dll'}
LINUX_ONLY = {'v3-yarn': ['--rope-scaling', 'yarn'], 'v2-yarn': ['--rope-scaling', 'yarn']}
# Holds a file open until its standard input ends.
HOLDER = '''#include <stdio.h>
#include <stdlib.h>
#include <windows.h>

int main(int argc, char** argv) {
  wchar_t path[1024];
  if (argc != 3 || MultiByteToWideChar(CP_UTF8, 0, argv[1], -1, path, 1024) == 0) return 2;
  const DWORD sharing = FILE_SHARE_READ | FILE_SHARE_WRITE | (atoi(argv[2]) ? FILE_SHARE_DELETE : 0);
  if (CreateFileW(path, GENERIC_READ, sharing, NULL, OPEN_EXISTING, 0, NULL) == INVALID_HANDLE_VALUE) return 1;
  putchar('o');
  fflush(stdout);
  while (getchar() != EOF) continue;
  return 0;
}
'''
# Has a thread with a team of its own, which must end.
TEAM_OF_A_THREAD = '''#include <minimind.h>
#include <stdlib.h>
#include <windows.h>

static minimind_model* model;

static DWORD WINAPI compute(void* status) {
  static const int32_t ids[] = {7, 8, 9};
  minimind_facts facts = {.size = sizeof facts};
  minimind_get_facts(model, &facts);
  float* logits = malloc(3 * facts.vocab_size * sizeof *logits);
  *(minimind_status*)status = minimind_logits(model, ids, 3, logits, 3 * facts.vocab_size, NULL, NULL);
  free(logits);
  return 0;
}

int main(int argc, char** argv) {
  minimind_error error;
  minimind_model_options options;
  minimind_default_model_options(&options, sizeof options);
  options.threads = 2;
  if (argc != 2 || minimind_open(argv[1], &options, &model, &error) != MINIMIND_OK) return 2;
  for (int i = 0; i < 3; ++i) {
    minimind_status status = MINIMIND_OK;
    HANDLE thread = CreateThread(NULL, 0, compute, &status, 0, NULL);
    if (WaitForSingleObject(thread, 30000) != WAIT_OBJECT_0) return 3;
    if (status != MINIMIND_OK) return 4;
  }
  minimind_close(model);
  return 0;
}
'''
# Starts a program in its console, after it has given that another code page, which must stay.
OTHER_CODE_PAGE = '''#include <process.h>
#include <windows.h>

int main(int argc, char** argv) {
  wchar_t arguments[16][1024];
  const wchar_t* given[17] = {NULL};
  for (int i = 1; i < argc && i <= 16; ++i) {
    MultiByteToWideChar(CP_UTF8, 0, argv[i], -1, arguments[i - 1], 1024);
    given[i - 1] = arguments[i - 1];
  }
  if (!SetConsoleCP(437) || !SetConsoleOutputCP(437)) return 2;
  if (_wspawnv(_P_WAIT, given[0], given) != 0) return 1;
  return GetConsoleCP() == 437 && GetConsoleOutputCP() == 437 ? 0 : 3;
}
'''
INTERRUPTED, FAILED, MISUSED = 130, 1, 2


def run(*arguments, program=None, **options):
    """Runs the program for Windows, or another one; returns its result with bytes."""
    command = [WINE, PROGRAM] if program is None else [program]
    options = {'capture_output': True, 'timeout': 300, 'env': ENVIRONMENT, **options}
    return subprocess.run([*map(str, command), *map(str, arguments)], check=False, **options)


def wait_until(happened, seconds=60):
    end = time.monotonic() + seconds
    while not happened() and time.monotonic() < end:
        time.sleep(0.2)


class Terminal:
    """The program in a terminal."""

    def __init__(self, *arguments, program=PROGRAM, cwd=None):
        self.output = b''
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.chdir(cwd or ROOT)
            os.execve(WINE, [WINE, str(program), *map(str, arguments)], {**ENVIRONMENT, 'TERM': 'xterm'})

    def type(self, text):
        os.write(self.terminal, text.encode())

    def wait_for(self, text, seconds=120):
        end = time.monotonic() + seconds
        while text not in self.text():
            if time.monotonic() > end or not self.read(end - time.monotonic()):
                raise AssertionError(f'{text!r} is not in {self.text()!r}')

    def read(self, seconds):
        if not select.select([self.terminal], [], [], max(0, seconds))[0]:
            return False
        with contextlib.suppress(OSError):
            self.output += os.read(self.terminal, 65536)
            return True
        return False

    def text(self):
        """What was written, without escape sequences. wine's console takes those of the program for characters, hides the cursor
        for each of them, and moves it for a space."""
        text = re.sub(r'\x1b\[[?]25[hl]', '', self.output.decode(errors='replace')).replace('\x1b[K\x1b[1C', ' ')
        return re.sub(r'\x1b(\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07)', '', text)

    def status(self):
        while self.read(60):
            pass
        _, status = os.waitpid(self.process, 0)
        os.close(self.terminal)
        return os.waitstatus_to_exitcode(status)


class WindowsTest(unittest.TestCase):
    maxDiff = 2000

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()), '诗人 和模型')
        cls.folder.mkdir()
        cls.model = cls.folder / '模型.pth'
        shutil.copy(GOLDEN / 'v3-dense/model.pth', cls.model)
        cls.poet = ROOT / 'weights/demo/model.pth'
        cls.library = pathlib.Path(zipfile.ZipFile(WHEEL).extract('minimind_cpp/libminimind-1.dll', cls.folder))

    def succeeds(self, *arguments, **options):
        result = run(*arguments, **options)
        self.assertEqual(result.returncode, 0, result.stderr.decode(errors='replace'))
        return result.stdout

    def same(self, *arguments, **options):
        """Asserts that both programs write the same, and returns it."""
        written = self.succeeds(*arguments, **options)
        self.assertEqual(written, run(*arguments, program=NATIVE, **options).stdout)
        return written

    def headers_of(self, file):
        return subprocess.run(['x86_64-w64-mingw32-objdump', '-p', file], capture_output=True, text=True, check=True).stdout

    def test_needs_only_libraries_of_the_system(self):
        for file in (PROGRAM, self.library):
            self.assertLessEqual(set(re.findall(r'DLL Name: (\S+)', self.headers_of(file))), SYSTEM_LIBRARIES)

    def test_the_library_gives_what_its_header_declares(self):
        declared = re.findall(r'^MINIMIND_API .*\b(minimind_\w+)\(', (API / 'minimind.h').read_text(), re.MULTILINE)
        [exports] = re.findall(r'\[Ordinal/Name Pointer\] Table\n(.*?)\n\n', self.headers_of(self.library), re.DOTALL)
        self.assertEqual([line.split()[-1] for line in exports.splitlines()], sorted(declared))

    def compiled(self, *sources):
        """A C program beside the library."""
        program = self.library.with_name(f'{pathlib.Path(sources[0]).stem}.exe')
        compiler = ['x86_64-w64-mingw32-gcc-posix', '-municode', '-std=c11', '-Wall', '-Wextra', '-Wpedantic', '-Werror', '-I', API]
        subprocess.run([*compiler, *sources, API_TESTS / 'windows_main.c', self.library, '-o', program], check=True)
        return program

    def test_a_c_program_writes_what_the_program_writes(self):
        question = '写一首七言绝句，题目：秋夜'
        messages = json.dumps([{'role': 'user', 'content': question}])
        model = self.folder / '诗人'
        shutil.copytree(self.poet.parent, model)
        example = self.compiled(API / 'example.c')
        written = run(example, model / 'model.pth', '春天', messages, program=WINE)
        self.assertEqual((written.returncode, written.stderr), (0, b''))
        options = ['-q', '--greedy', '-n', '32', '-m', self.poet, '-p']
        expected = [run(*command, program=NATIVE).stdout for command in (['generate', *options, '春天'], ['chat', *options, question])]
        self.assertEqual(written.stdout, b'\n'.join(expected))
        missing = run(example, '没有.pth', '春天', messages, program=WINE)
        self.assertEqual(missing.returncode, 1)
        self.assertIn('没有.pth', missing.stderr.decode())

    def test_a_c_program_may_end_while_it_writes(self):
        ending = self.compiled(API_TESTS / 'ends_while_writing.c')
        for _ in range(3):
            ended = run(ending, self.poet, program=WINE, timeout=60)
            self.assertEqual((ended.returncode, ended.stdout), (0, b'ends\n'))

    def test_logits_are_those_of_pytorch(self):
        for case in sorted(GOLDEN.iterdir()):
            if not case.is_dir():
                continue
            with self.subTest(case.name):
                stated = json.loads((case / 'case.json').read_text())
                models = [name for name in ('model.pth', 'pytorch_model.bin') if (case / name).exists()]
                lora = ['--lora', case / 'lora.pth'] if (case / 'lora.pth').exists() else []
                config = ['--config', case / 'config.json'] if (case / 'config.json').exists() else []
                tokens = ','.join(map(str, stated['tokens']))
                self.succeeds('compare', case / models[0] if models else case, *lora, *config, '--tokens', tokens,
                              *LINUX_ONLY.get(case.name, []), '--reference', case / 'logits.npy', '--tolerance', '2e-4')

    def test_greedy_tokens_are_those_of_pytorch(self):
        stated = json.loads((GOLDEN / 'v3-dense/case.json').read_text())
        prompt = ','.join(map(str, stated['tokens'][: stated['prompt_len']]))
        written = self.succeeds('generate', self.model, '-q', '--greedy', '--ignore-eos', '--tokens', prompt, '-n', len(stated['greedy']))
        self.assertEqual([int(token) for token in re.findall(r'\d+', written.decode())], stated['greedy'])

    def test_each_instruction_set_writes_the_poem(self):
        for name in ('sse2', 'avx2'):
            with self.subTest(name):
                self.same('generate', '-q', '--greedy', '-n', '16', '-m', self.poet, '-p', '床前明月光，', env={**ENVIRONMENT, 'MINIMIND_ISA': name})

    def test_paths_and_arguments_are_unicode(self):
        written = self.succeeds('generate', '-q', '--greedy', '-n', '8', '-m', self.poet, '-p', '春眠不觉晓，😀')
        self.assertEqual(written, run('generate', '-q', '--greedy', '-n', '8', '-m', self.poet, '-p', '春眠不觉晓，😀', program=NATIVE).stdout)
        for path in (self.model.name, f'.\\{self.model.name}', f'..\\{self.folder.name}\\{self.model.name}', f'Z:{self.model}'.replace('/', '\\')):
            with self.subTest(path):
                stated = json.loads(self.succeeds('inspect', path, '--json', cwd=self.folder))
                self.assertEqual(stated['format'], 'torch.save')
        missing = run('inspect', '没有.pth', cwd=self.folder)
        self.assertEqual(missing.returncode, FAILED)
        self.assertIn('没有.pth: cannot be opened: No such file or directory', missing.stderr.decode())

    def test_bytes_of_standard_streams_stay(self):
        text = b'a\r\nb\n\x1ac\r\n\xe6\x98\xa5'
        ids = self.same('tokenize', '-m', self.poet, input=text)
        self.assertEqual(self.same('tokenize', '-m', self.poet, '--decode', input=ids).rstrip(b'\n'), text)

    def test_converts_to_the_same_bytes(self):
        folder = self.folder / '转换'
        folder.mkdir()
        for name in ('诗人.gguf', '诗人.pth'):
            with self.subTest(name):
                self.succeeds('convert', self.poet, folder / name, '--type', 'q8_0' if name.endswith('gguf') else 'f16', '-q')
                other = folder / 'native' / name
                other.parent.mkdir(exist_ok=True)
                run('convert', self.poet, other, '--type', 'q8_0' if name.endswith('gguf') else 'f16', '-q', program=NATIVE)
                self.assertEqual((folder / name).read_bytes(), other.read_bytes())
        refused = run('convert', self.poet, folder / '诗人.gguf')
        self.assertEqual(refused.returncode, FAILED)
        self.succeeds('convert', self.poet, f'{folder}/文件夹/', '-q')
        self.assertEqual(json.loads(self.succeeds('inspect', f'{folder}/文件夹', '--json'))['parameters'],
                         json.loads(self.succeeds('inspect', self.poet, '--json'))['parameters'])
        self.assertEqual([path.name for path in folder.rglob('.*')], [])

    def test_batch_writes_the_same_lines_and_continues(self):
        requests = self.folder / '请求.jsonl'
        requests.write_text(''.join(json.dumps({'prompt': text}, ensure_ascii=False) + '\n' for text in ('春', '夏', '秋')))
        results, native = self.folder / '结果.jsonl', self.folder / 'native.jsonl'
        options = ['-m', self.poet, '-n', '8', '--temperature', '0', '-q']
        self.succeeds('batch', requests, '-o', results, *options)
        run('batch', requests, '-o', native, *options, program=NATIVE)
        whole = results.read_bytes()

        def texts(path):
            return [json.loads(line)['response']['body'].get('choices') for line in path.read_text().splitlines()]

        self.assertEqual(texts(results), texts(native))
        results.write_bytes(whole.splitlines(keepends=True)[0])
        self.succeeds('batch', requests, '-o', results, *options)
        self.assertEqual(texts(results), texts(native))

    def test_threads_with_teams_end(self):
        source = self.folder / 'team_of_a_thread.c'
        source.write_text(TEAM_OF_A_THREAD)
        self.assertEqual(run(self.compiled(source), self.poet, program=WINE).returncode, 0)

    def test_a_folder_with_one_checkpoint_has_its_config(self):
        hub, folder = self.folder / 'hub', self.folder / '一个'
        self.succeeds('convert', self.poet, f'{hub}/', '-q')
        folder.mkdir()
        (hub / 'model.safetensors').rename(folder / '诗人.safetensors')
        config = json.loads((hub / 'config.json').read_text())
        (folder / 'config.json').write_text(json.dumps({**config, 'max_position_embeddings': 4096}))
        self.assertRegex(self.succeeds('inspect', folder).decode(), r'max_position_embeddings +4096')

    def test_threads_that_sleep_are_woken(self):
        """More threads than cores, so that all of them sleep at each barrier."""
        self.same('generate', '-q', '--greedy', '--ignore-eos', '-n', '200', '-t', '8', '-m', self.poet, '-p', '床前明月光，')

    def test_a_file_that_another_program_has_open_is_replaced(self):
        """If that program lets others remove it, as minimind does; otherwise the file stays, and nothing else is left."""
        source = self.folder / 'holder.c'
        source.write_text(HOLDER)
        holding = self.compiled(source)
        for may_remove in (True, False):
            with self.subTest(may_remove=may_remove):
                folder = self.folder / f'打开的 {may_remove}'
                folder.mkdir()
                model = folder / '诗人.gguf'
                self.succeeds('convert', self.poet, model, '--type', 'q8_0', '-q')
                before = model.read_bytes()
                holder = subprocess.Popen([WINE, holding, model, str(int(may_remove))], stdin=subprocess.PIPE,
                                          stdout=subprocess.PIPE, env=ENVIRONMENT)
                try:
                    self.assertEqual(holder.stdout.read(1), b'o')
                    result = run('convert', self.poet, model, '--type', 'q4_0', '--force', '-q')
                finally:
                    holder.communicate(b'end')
                self.assertEqual(result.returncode, 0 if may_remove else FAILED, result.stderr.decode())
                self.assertEqual(model.read_bytes() != before, may_remove)
                self.assertEqual(list(folder.iterdir()), [model])
                if not may_remove:
                    self.assertIn('诗人.gguf', result.stderr.decode())

    def test_a_file_has_one_writer(self):
        held, results = self.folder / '锁.jsonl', self.folder / '锁住.jsonl'
        held.write_text(json.dumps({'prompt': '春', 'max_tokens': 30_000, 'ignore_eos': True}) + '\n')
        first = subprocess.Popen([WINE, PROGRAM, 'batch', '/dev/stdin', '-o', results, '-m', self.poet, '-q'],
                                 stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT)
        try:
            first.stdin.write(held.read_bytes() * 50)
            first.stdin.close()

            def is_there():
                self.assertIsNone(first.poll(), 'it ended')
                return results.exists()

            wait_until(is_there)
            second = run('batch', held, '-o', results, '-m', self.poet, '-q')
            self.assertEqual(second.returncode, FAILED)
            self.assertRegex(second.stderr.decode(), '锁住.jsonl: is in use by process [0-9]+')
        finally:
            first.kill()
            first.wait()
            first.stderr.close()

    def test_exit_statuses(self):
        self.assertEqual(run('generate', '--no-such-option').returncode, MISUSED)
        self.assertEqual(run('generate', '-m', 'missing.pth').returncode, FAILED)
        self.assertEqual(run('--version').returncode, 0)

    def test_bench_measures(self):
        measured = json.loads(self.succeeds('bench', '-m', self.model, '-p', '8', '-n', '4', '-r', '1', '-t', '1', '--json'))
        self.assertTrue(measured)

    def test_chat_answers_a_script(self):
        self.same('chat', '-m', self.poet, '--turns', '-q', '--greedy', '-n', '8', input='写一首诗\n再写一首\n'.encode())

    def test_chat_in_a_terminal(self):
        chat = Terminal('chat', '-m', self.poet, '--greedy', '-n', '8')
        chat.wait_for('>')
        chat.type('/hel\t\r')
        chat.wait_for('/exit')
        chat.type('春\x7f秋\r')
        chat.wait_for('秋')
        chat.type('/stats\r')  # read after the answer
        chat.wait_for('all answers')
        chat.type('\x03')
        chat.wait_for('Ctrl-C again')
        chat.type('\x03')
        self.assertEqual(chat.status(), INTERRUPTED)
        histories = pathlib.Path(ENVIRONMENT['WINEPREFIX']).glob('drive_c/users/*/.local/state/minimind/history')
        self.assertEqual([file.read_text().splitlines()[-3:] for file in histories], [['/help ', '秋', '/stats']])

    def test_ctrl_z_ends_chat(self):
        chat = Terminal('chat', '-m', self.poet)
        chat.wait_for('>')
        modes = termios.tcgetattr(chat.terminal)
        modes[3] &= ~termios.ISIG  # otherwise it takes the key for itself
        termios.tcsetattr(chat.terminal, termios.TCSANOW, modes)
        chat.type('\x1a')
        self.assertEqual(chat.status(), 0)

    def test_a_console_has_characters_in_notes(self):
        terminal = Terminal('inspect', '没有.pth')
        self.assertEqual(terminal.status(), FAILED)
        self.assertIn('没有.pth: cannot be opened', terminal.text())

    def test_a_console_needs_no_code_page_of_unicode(self):
        """The default one of Windows in English has no Chinese."""
        source = self.folder / 'other_code_page.c'
        source.write_text(OTHER_CODE_PAGE)
        options = ['generate', '-q', '--greedy', '-n', '16', '-p', '春']
        written = run(*options, program=NATIVE).stdout.decode()
        terminal = Terminal(PROGRAM.name, *options, program=self.compiled(source), cwd=PROGRAM.parent)
        self.assertEqual(terminal.status(), 0)
        self.assertIn(re.sub(r'\s', '', written), re.sub(r'\s', '', terminal.text()))

    def test_ctrl_c_removes_what_is_not_complete(self):
        folder = self.folder / '中断'
        folder.mkdir()
        tokens = self.folder / '词元.txt'
        tokens.write_text('5 ' * 6000)  # written as they are computed, for seconds
        work = Terminal('logits', '-m', self.poet, '--tokens-file', tokens, '-o', folder / '结果.npy')
        wait_until(lambda: list(folder.iterdir()))
        work.type('\x03')
        self.assertEqual(work.status(), INTERRUPTED)
        self.assertEqual(list(folder.iterdir()), [])

    def test_serve(self):
        model = self.folder / 'served.gguf'
        self.succeeds('convert', self.poet, model, '--type', 'q8_0', '-q')
        server = Terminal('serve', '-m', model, '--port', '0')
        server.wait_for('serving at')
        address = re.search(r'http://127\.0\.0\.1:\d+', server.text())[0]
        with urllib.request.urlopen(f'{address}/') as page:
            self.assertIn(b'<html', page.read())
        body = {'messages': [{'role': 'user', 'content': '春'}], 'max_tokens': 8, 'temperature': 0}
        request = urllib.request.Request(f'{address}/v1/chat/completions', json.dumps(body).encode(), {'Content-Type': 'application/json'})
        with urllib.request.urlopen(request) as answer:
            whole = json.load(answer)['choices'][0]['message']['content']
        request.data = json.dumps({**body, 'stream': True}).encode()
        with urllib.request.urlopen(request) as answer:
            pieces = [json.loads(line[6:]) for line in answer.read().splitlines() if line.startswith(b'data: {')]
        self.assertEqual(''.join(piece['choices'][0]['delta'].get('content') or '' for piece in pieces if piece['choices']), whole)
        # The file can be replaced while the server runs.
        self.succeeds('convert', self.poet, model, '--type', 'q4_0', '--force', '-q')
        second = run('serve', '-m', model, '--port', address.rsplit(':', 1)[1])
        self.assertEqual(second.returncode, FAILED)
        self.assertIn('is in use', second.stderr.decode())
        server.type('\x03')
        self.assertEqual(server.status(), 0)

    def test_serve_says_why_it_cannot_listen(self):
        for options, words in ((['--host', '192.0.2.1', '--no-api-key'], 'Cannot assign requested address'),
                               (['--socket', 'minimind.sock'], 'Address family not supported')):
            refused = run('serve', '-q', '-m', self.poet, *options)
            self.assertEqual(refused.returncode, FAILED)
            self.assertIn(words, refused.stderr.decode())

    def test_serve_answers_after_a_model_was_dropped(self):
        """Whose thread had a team of its own."""
        folder = self.folder / 'served'
        folder.mkdir()
        self.succeeds('convert', self.poet, folder / 'poet.gguf', '--type', 'q8_0', '-q')
        server = Terminal('serve', '-m', folder, '-t', '2', '--port', '0')
        server.wait_for('serving at')
        address = re.search(r'http://127\.0\.0\.1:\d+', server.text())[0]
        body = {'model': 'poet', 'prompt': '春', 'stream': False, 'options': {'num_predict': 4}}
        for change in ({}, {'prompt': '', 'keep_alive': 0}, {}):
            request = urllib.request.Request(f'{address}/api/generate', json.dumps({**body, **change}).encode(),
                                             {'Content-Type': 'application/json'})
            with urllib.request.urlopen(request, timeout=60) as answer:
                self.assertTrue(json.load(answer)['done'])
        server.type('\x03')
        self.assertEqual(server.status(), 0)


if __name__ == '__main__':
    unittest.main()
