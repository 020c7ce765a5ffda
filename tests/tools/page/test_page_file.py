"""Tests the page in one file in a browser, opened from disk: it has an engine, a poet and no server."""

import base64
import functools
import http.server
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / 'tests/tools/serve/page'))

from test_page import POEM_QUESTION, PageTest  # noqa: E402

PAGE = pathlib.Path(os.environ.get('PAGE', ROOT / 'build/release/page')).resolve()
PROGRAM = os.environ.get('MINIMIND_PROGRAM', ROOT / 'minimind')
POEM = r'^[\u4e00-\u9fff，。！？、\n ]{10,}$'


class FileTest(PageTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.models = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        shutil.copytree(ROOT / 'weights/demo', cls.models / 'torch')
        for name, out in (('half.gguf', 'half.gguf'), ('folder', 'folder/')):
            subprocess.run([PROGRAM, 'convert', ROOT / 'weights/demo/model.pth', f'{cls.models}/{out}', '-q'], check=True)

    def start_server(self):
        return types.SimpleNamespace(address=(PAGE / 'minimind.html').as_uri())

    # All pages from disk share one storage, in which a page that is left keeps its answer.
    def load(self):
        self.browser.get(self.server.address)
        self.script('localStorage.clear(); Storage.prototype.setItem = () => {}')
        self.browser.get(self.server.address)
        self.wait(lambda: self.find('#checkpoint-0 option:not([value=""])'), 60)
        self.wait(lambda: self.all('.answer') and self.idle(), 60)

    def blob_prefix(self):
        return 'blob:null/'

    def check_network(self):
        for url in self.browser.take_requests():
            self.assertTrue(url.startswith((self.server.address, self.blob_prefix(), 'data:', 'chrome')), url)

    # Firefox logs a database whose page is left while it is open.
    def is_expected(self, message):
        return 'IndexedDB UnknownErr' in message

    def choose(self, *files):
        self.find('#checkpoint-files').send_keys('\n'.join(str(file) for file in files))

    def chosen(self):
        return self.script('return document.querySelector("#checkpoint-0").value')

    def test_poem_is_written_at_once(self):
        self.assertRegex(self.answer(), POEM)
        self.assertRegex(self.text('.statistics'), r'tokens/s\s+first token .*\s+\d+ of \d+ tokens of context')
        self.assertEqual(self.chosen(), 'minimind-poet')
        self.send('再写一首')
        self.assertRegex(self.answer(), POEM)

    def test_file_is_at_most_six_megabytes(self):
        self.assertLessEqual((PAGE / 'minimind.html').stat().st_size, 6_000_000)

    def test_checkpoints_of_every_format_are_opened(self):
        choices = {
            'checkpoint': sorted((self.models / 'torch').glob('*.json')) + [self.models / 'torch/model.pth'],
            'half': [self.models / 'half.gguf'],
        }
        folder = sorted((self.models / 'folder').iterdir())
        for name, files in [*choices.items(), ('checkpoint', folder)]:
            self.choose(*files)
            self.wait(lambda name=name: self.chosen() == name, 60)
            self.assertFalse(self.find('#not-opened').is_displayed())
            self.assertEqual(self.all('.turn'), [])
            self.send(POEM_QUESTION)
            self.assertRegex(self.answer(), POEM, name)
            self.assertEqual(self.text('.speaker'), name)
            self.click('#new-chat')
            self.assertEqual(self.chosen(), name)

    def test_damaged_file_is_named_and_the_poet_goes_on(self):
        cut = self.models / 'cut.gguf'
        cut.write_bytes((self.models / 'half.gguf').read_bytes()[:500_000])
        self.choose(cut)
        self.wait(lambda: self.find('#not-opened').is_displayed(), 60)
        self.assertIn('Not opened: cut.gguf', self.text('#not-opened'))
        self.choose(self.models / 'torch/model.pth')
        self.wait(lambda: 'model.pth has no tokenizer' in self.text('#not-opened'))
        large = self.models / 'model.safetensors'
        large.touch()
        os.truncate(large, 2_100_000_000)
        self.choose(large, *(self.models / 'torch').glob('*.json'))
        self.wait(lambda: 'Not opened: the folder: is 2101 MB, expected at most 2000' in self.text('#not-opened'))
        self.send('再写一首')
        self.assertRegex(self.answer(), POEM)

    def test_dropped_files_of_every_format_are_opened(self):
        tokenizer = sorted((self.models / 'torch').glob('tokenizer*.json'))
        for name, files in (('checkpoint', [self.models / 'torch/model.pth', *tokenizer]), ('half', [self.models / 'half.gguf']),
                            ('checkpoint', sorted((self.models / 'folder').iterdir()))):
            self.script('''
                const dropped = new DataTransfer();
                for (const [name, text] of arguments[0])
                  dropped.items.add(new File([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))], name));
                for (const kind of ['dragenter', 'dragover', 'drop'])
                  document.body.dispatchEvent(new DragEvent(kind, {dataTransfer: dropped, bubbles: true, cancelable: true}));''',
                        [[file.name, base64.b64encode(file.read_bytes()).decode()] for file in files])
            self.wait(lambda name=name: self.chosen() == name and self.content('#notice:not([hidden]) span') == f'{name} is ready.', 60)
            self.send(POEM_QUESTION)
            self.assertRegex(self.answer(), POEM, name)
            self.click('#new-chat')
            self.script('document.getElementById("notice").hidden = true')

    # Only Chromium lets a test drop a folder.
    @unittest.skipUnless(os.environ.get('BROWSER', 'chromium') == 'chromium', 'a test cannot drop a folder here')
    def test_dropped_folder_is_opened(self):
        drag = {'x': 400, 'y': 300, 'data': {'items': [], 'files': [str(self.models / 'folder')], 'dragOperationsMask': 1}}
        for kind in ('dragEnter', 'dragOver', 'drop'):
            self.browser.execute_cdp_cmd('Input.dispatchDragEvent', {'type': kind, **drag})
        self.wait(lambda: self.chosen() == 'folder', 60)
        self.send(POEM_QUESTION)
        self.assertRegex(self.answer(), POEM)

    def test_checkpoint_is_kept_until_it_is_forgotten(self):
        self.choose(self.models / 'half.gguf')
        self.wait(lambda: self.chosen() == 'half', 60)
        self.click('#notice button')
        self.wait(lambda: self.text('#notice') == 'This browser keeps half.')
        self.browser.get(self.server.address)
        self.wait(lambda: self.chosen() == 'half', 60)
        self.click('#notice button')
        self.wait(lambda: self.text('#notice') == 'This browser keeps no checkpoint now.')
        self.load()
        self.assertEqual(self.chosen(), 'minimind-poet')

    def test_checkpoint_without_storage_is_not_kept(self):
        self.choose(self.models / 'half.gguf')
        self.wait(lambda: self.chosen() == 'half', 60)
        self.script('Storage.prototype.setItem = () => { throw new DOMException("full", "QuotaExceededError"); }')
        self.click('#notice button')
        self.wait(lambda: self.text('#not-opened') == 'Not kept: the storage of this page is full or disabled')
        count = self.browser.execute_async_script('''
            const done = arguments[0], opening = indexedDB.open('minimind', 1);
            opening.onsuccess = () => {
              opening.result.transaction('checkpoint').objectStore('checkpoint').count().onsuccess = ({target}) => {
                opening.result.close();
                done(target.result);
              };
            };''')
        self.assertEqual(count, 0)

    def test_stop_is_heard_at_once(self):
        self.find('#message').send_keys('续写：空山新雨后，')
        # In the page: an answer may be over before another process looks.
        milliseconds = self.browser.execute_async_script('''
            const done = arguments[0], stop = document.getElementById('stop');
            let start = 0;
            const observer = new MutationObserver(() => {
              if (!start && !stop.hidden) {
                start = performance.now();
                stop.click();
              } else if (start && stop.hidden) {
                observer.disconnect();
                done(performance.now() - start);
              }
            });
            observer.observe(document.body, {attributes: true, childList: true, subtree: true});
            document.getElementById('send').click();''')
        self.wait(self.idle)
        self.assertLess(milliseconds, 50)

    def test_two_models_are_compared(self):
        self.choose(self.models / 'half.gguf')
        self.wait(lambda: self.chosen() == 'half', 60)
        self.click('#new-chat')
        self.click('#compare')
        self.send(POEM_QUESTION)
        self.assertEqual(len(self.all('.answer > .markdown')), 2)

    def test_continuation_shows_probabilities(self):
        self.click('#completion-tab')
        self.find('#prompt').send_keys('夜泊枫桥')
        self.click('#complete')
        self.wait(lambda: self.find('#complete').is_displayed() and len(self.all('.token')) > 3, 60)
        self.all('.token')[2].click()
        self.assertRegex(self.text('#token-details'), r'Probability (< )?[0-9.]+%')

    def test_inside_is_shown(self):
        self.click('#inside-tab')
        self.find('#inside-text').send_keys('夜泊枫桥')
        self.click('#look')
        self.wait(lambda: self.all('#inside-tokens .piece') and self.all('#inside-details .layer'), 60)
        self.all('#inside-tokens .piece')[1].click()
        chosen = 'return document.querySelector(\'#inside-tokens [aria-pressed="true"]\').dataset.index'
        self.wait(lambda: self.script(chosen) == '1', 60)
        self.assertFalse(self.find('#inside-error').is_displayed())

    def test_axe_finds_no_fault(self):
        self.script('document.getElementById("not-opened").hidden = false; document.getElementById("opening").hidden = false')
        for theme in ('light', 'dark'):
            self.script('document.documentElement.dataset.theme = arguments[0]', theme)
            self.assertEqual(self.faults(), [], theme)

    def test_phone_has_room_for_everything(self):
        self.browser.set_view(360, 740)
        self.addCleanup(self.browser.reset_view)
        self.assertLessEqual(self.script('return document.documentElement.scrollWidth'), 360)
        self.assertTrue(self.find('#open-model').is_displayed())


class BrokenEngineTest(FileTest):
    """An engine that ends within a function is no more; the page starts another one."""

    def start_server(self):
        page, text = self.models / 'broken.html', (PAGE / 'minimind.html').read_text()
        end = "throw new WebAssembly.RuntimeError('unreachable');"
        for start, broken in (('\nask({id, path, body}) {', f"globalThis.stops = body.includes('a step'); if (body.includes('a request')) {end}"),
                              ('\nfunction run() {', f'if (globalThis.stops) {end}')):
            self.assertEqual(text.count(start), 1)
            text = text.replace(start, start + broken)
        page.write_text(text)
        return types.SimpleNamespace(address=page.as_uri())

    def test_another_engine_is_started(self):
        for place in ('a request', 'a step'):
            self.choose(self.models / 'half.gguf')
            self.wait(lambda: self.chosen() == 'half', 60)
            self.send(place)
            self.assertIn('unreachable; the engine was started again: open your checkpoint once more', self.text('.lane .error'))
            self.wait(lambda: self.chosen() == 'minimind-poet', 60)
            self.click('#new-chat')
            self.send(POEM_QUESTION)
            self.assertRegex(self.answer(), POEM)


class UnstartedTest(FileTest):
    """An engine that fails before the page listens."""

    def start_server(self):
        page, start = self.models / 'unstarted.html', 'var createMinimind = '
        text = (PAGE / 'minimind.html').read_text()
        self.assertEqual(text.count(start), 1)
        page.write_text(text.replace(start, "throw new Error('no engine here');" + start))
        return types.SimpleNamespace(address=page.as_uri())

    def load(self):
        self.browser.get(self.server.address)

    def is_expected(self, message):
        return 'no engine here' in message

    def test_it_is_said(self):
        self.wait(lambda: 'no engine here' in self.text('#models-error'), 60)


class ExportedTest(FileTest):
    """A page that the program wrote, with a model of the user's."""

    def start_server(self):
        page = self.models / 'mine.html'
        if not page.exists():
            subprocess.run([PROGRAM, 'serve', '-q', '-m', self.models / 'torch/model.pth', '--type', 'q8_0', '--export-page', page,
                            '--page', PAGE / 'minimind.html'], check=True)
        return types.SimpleNamespace(address=page.as_uri())

    def test_model_inside_is_the_users(self):
        self.assertEqual(self.chosen(), 'mine')
        self.send(POEM_QUESTION)
        self.assertRegex(self.answer(), POEM)


class TruncatedTest(FileTest):
    """A page of which a part is missing."""

    def start_server(self):
        page = self.models / 'truncated.html'
        page.write_bytes((PAGE / 'minimind.html').read_bytes()[:-1_000_000])
        return types.SimpleNamespace(address=page.as_uri())

    def load(self):
        self.browser.get(self.server.address)

    def test_it_is_said(self):
        self.wait(lambda: 'this page is truncated; download it again' in self.text('#models-error'), 60)


class HostTest(FileTest):
    """The same file on a host that only sends files."""

    def handler(self):
        return QuietHandler

    def start_server(self):
        handler = functools.partial(self.handler(), directory=PAGE)
        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return types.SimpleNamespace(address=f'http://127.0.0.1:{server.server_port}/minimind.html')

    # What the log would show of others: the page itself is a request.
    def check_network(self):
        requests = self.browser.take_requests()
        self.assertIn(self.server.address, requests)
        self.assertEqual([url for url in requests if not url.startswith((self.server.address, self.blob_prefix(), 'data:'))], [])

    def blob_prefix(self):
        return 'blob:' + self.server.address.removesuffix('minimind.html')


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class SlowHandler(QuietHandler):
    # Ends each part within a piece, or between one and the script that follows it.
    def copyfile(self, source, outputfile):
        for part in re.split(rb'(?<=</script>)(?=<script>takePiece)', source.read()):
            outputfile.write(part)
            time.sleep(0.05)


class SlowHostTest(HostTest):
    """The page itself starts before it has all pieces."""

    def handler(self):
        return SlowHandler

    def load(self):
        self.browser.get(self.server.address)
        self.wait(lambda: self.all('.answer') and self.idle(), 60)


class ChineseFileTest(FileTest):
    language = 'zh-CN'

    def test_poem_is_written_at_once(self):
        self.assertRegex(self.answer(), POEM)
        self.assertEqual(self.text('#open-model'), '打开检查点')

    def test_damaged_file_is_named_and_the_poet_goes_on(self):
        self.choose(self.models / 'torch/model.pth')
        self.wait(lambda: 'model.pth 没有分词器' in self.text('#not-opened'))


def load_tests(loader, tests, pattern):
    """Only the tests of this file: those that it imports are run by their own."""
    suite = loader.loadTestsFromTestCase(FileTest)
    for name in ('test_poem_is_written_at_once', 'test_damaged_file_is_named_and_the_poet_goes_on'):
        suite.addTest(ChineseFileTest(name))
    suite.addTest(BrokenEngineTest('test_another_engine_is_started'))
    suite.addTest(UnstartedTest('test_it_is_said'))
    suite.addTest(ExportedTest('test_model_inside_is_the_users'))
    suite.addTest(TruncatedTest('test_it_is_said'))
    suite.addTest(HostTest('test_poem_is_written_at_once'))
    suite.addTest(SlowHostTest('test_poem_is_written_at_once'))
    return suite


if __name__ == '__main__':
    unittest.main()
