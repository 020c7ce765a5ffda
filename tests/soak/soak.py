"""Soaks `minimind serve`: honest clients beside hostile ones, with checkpoints rewritten under it. Run: make soak

Phases: honest clients alone, which gives the latency to compare with; honest and hostile clients together, most of the time;
SIGTERM while the hostile ones go on; kill -9, and a restart. Prints a line for each promise and exits with 1 if one is broken. All
traffic is to 127.0.0.1. Python's standard library is enough.
"""

import argparse
import collections
import contextlib
import dataclasses
import http.client
import json
import math
import multiprocessing
import os
import pathlib
import queue
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import attacks

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEMO = ROOT / 'weights' / 'demo'
PROMPTS = ['床前明月光，', '江上', '秋夜', '春风又绿江南岸，', '山居', '大漠孤烟直，', '月' * 60, 'The moon ']
DRAIN_SECONDS = 3
SILENCE_SECONDS = 90  # without an honest answer: the server hangs and is started again
PROMPT_STEP_SECONDS = 0.032  # which a text may have to wait for: engine_thread.cpp
MEGABYTE = 1 << 20
ALONE, TOGETHER, CALM, ENDING = range(4)  # phases: hostile clients ask nothing while it is ALONE or CALM

# The server has half of the cores for itself, as it has a machine for itself, and hostile clients run when honest ones are idle:
# what is to be measured is the work that clients cause, not that of being a client. A core may be half of a real one, whose other
# half takes a third of its speed when it works: so hostile clients keep theirs as busy while honest ones are alone.
CORES = sorted(os.sched_getaffinity(0))
SERVER_CORES, CLIENT_CORES = (CORES[:(len(CORES) + 1) // 2], CORES[(len(CORES) + 1) // 2:] or CORES)


# ---- Figures ----

def percentile(values, share):
    """Returns the smallest of the values that `share` of them do not exceed; 0 if there are none."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0


def median(values):
    return percentile(values, 0.5)


def growth(values):
    """Returns the medians of the middle and of the last third, between which what is flat does not grow."""
    third = len(values) // 3
    return (median(values[third:2 * third]), median(values[2 * third:])) if third else (0.0, 0.0)


@dataclasses.dataclass
class Line:
    passed: bool
    name: str
    found: str
    expected: str


def is_flat_line(name, values, unit, slack):
    before, after = growth(values)
    most = before * 1.05 + slack
    return Line(0 < after <= most, f'{name} flat',
                f'{after / unit:.0f} after {before / unit:.0f} (most {max(values, default=0) / unit:.0f})',
                f'at most {most / unit:.0f}')


# ---- The server ----

class Server:
    """`minimind serve`, started again whenever it ends or hangs, which is counted."""

    def __init__(self, program, files):
        self.command = [program, 'serve', str(files.model), '--drain', str(DRAIN_SECONDS), '--port', '0',
                        '--socket', f'{files.folder}/socket', '--seed', '1', '--kv-memory', '64']
        self.files = files
        self.faults = []       # how it ended, and that it hung
        self.escapes = 0       # lines of the log with control characters
        self.last_output = collections.deque(maxlen=30)
        self.samples = []      # (memory, descriptors, threads)
        self.process = None
        self.port = None
        self.start()

    def start(self):
        found = None
        with self.files.model_is_whole:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                            stderr=subprocess.PIPE, cwd=self.files.folder,
                                            preexec_fn=lambda: os.sched_setaffinity(0, SERVER_CORES))
            while not found:
                line = self.process.stderr.readline()
                if not line:
                    raise SystemExit(f'soak: the server does not start: status {self.process.wait()}')
                self.last_output.append(line)
                found = re.search(rb'http://127\.0\.0\.1:(\d+)', line)
        self.port = int(found[1])
        self.command[self.command.index('--port') + 1] = str(self.port)
        threading.Thread(target=self.read_log, args=(self.process.stderr,), daemon=True).start()

    def read_log(self, stream):
        with stream:
            for line in stream:
                self.last_output.append(line[:300])
                if any(byte < 32 and byte not in b'\n\t' for byte in line) or b'\x7f' in line:
                    self.escapes += 1

    def restart(self, fault):
        self.faults.append(fault)
        print(f'soak: {fault}; it is started again', file=sys.stderr)
        if not fault.startswith('hung'):
            sys.stderr.buffer.writelines(list(self.last_output)[-8:])
        self.process.kill()
        self.process.wait()
        self.start()

    def watch(self):
        """Notes memory, descriptors and threads, and starts the server again if it has ended."""
        status = self.process.poll()
        if status is not None:
            return self.restart(f'ended with signal {-status}' if status < 0 else f'ended with status {status}')
        with contextlib.suppress(OSError, TypeError):
            proc = pathlib.Path(f'/proc/{self.process.pid}')
            text = (proc / 'status').read_text()
            number = lambda name: int(re.search(rf'^{name}:\s+(\d+)', text, re.M)[1])
            self.samples.append((number('VmRSS') * 1024, len(os.listdir(proc / 'fd')), number('Threads')))

    def terminate(self, longest):
        """Sends SIGTERM. Returns the seconds until the end and the status, or None."""
        start = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            return time.monotonic() - start, self.process.wait(timeout=longest)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return time.monotonic() - start, None


# ---- Honest clients ----

class Text:
    """A request of an honest client, with the text that the program writes for it alone."""

    def __init__(self, program, model, prompt, seed, tokens):
        self.body = {'prompt': prompt, 'seed': seed, 'max_tokens': tokens}
        self.expected = subprocess.run(
            [program, 'generate', '--raw', '-q', '-n', str(tokens), '--seed', str(seed), '-p', prompt, '-m', model],
            check=True, capture_output=True).stdout.decode()

    def ask(self, port, stream):
        """Returns the status and the text of the answer."""
        connection = http.client.HTTPConnection('127.0.0.1', port, timeout=attacks.ANSWER_SECONDS)
        try:
            connection.request('POST', '/v1/completions', json.dumps({**self.body, 'stream': stream}),
                               {'Content-Type': 'application/json'})
            answer = connection.getresponse()
            received = answer.read().decode()
        finally:
            connection.close()
        if answer.status != 200:
            return answer.status, received
        if not stream:
            return 200, json.loads(received)['choices'][0]['text']
        events = [json.loads(event[6:]) for event in received.split('\n\n') if event.startswith('data: {')]
        return 200 if received.endswith('data: [DONE]\n\n') else 0, ''.join(event['choices'][0]['text'] for event in events)


def be_honest(index, phase, results, port, texts):
    """Asks for texts with pauses, as people do; puts (phase, seconds, outcome) into results."""
    round_ = 0
    time.sleep(index * 0.05)  # not all at once
    while phase.value >= 0:
        text = texts[(index + round_) % len(texts)]
        now, start = phase.value, time.monotonic()
        try:
            status, written = text.ask(port, stream=round_ % 2 == 1)
            outcome = f'status {status}' if status != 200 else 'right' if written == text.expected else 'wrong'
        except (OSError, http.client.HTTPException, ValueError, LookupError) as error:
            outcome = type(error).__name__
        # One that was still under way when the server was ended belongs to that.
        results.put((ENDING if phase.value == ENDING else now, time.monotonic() - start, outcome))
        round_ += 1
        time.sleep(0.3 + 0.4 * ((index * 7 + round_ * 3) % 10) / 10)


def be_hostile(index, phase, results, port, folder, outside, seed, names):
    """Attacks one after the other, each client from another one on; puts (name, seconds, outcome, leak) into results."""
    target = attacks.Target(port, folder, outside, seed * 1000 + index)
    every = attacks.chosen(names)
    round_ = index
    while phase.value >= 0:
        if phase.value in (ALONE, CALM):
            if index == 0 and phase.value == ALONE:
                sum(range(100_000))
            else:
                time.sleep(0.05)
            continue
        attack = every[round_ % len(every)]
        start, leak = time.monotonic(), False
        try:
            status, answer = attack(target)
            outcome = str(status)
            leak = attacks.SECRET.encode() in answer or b'root:' in answer
        except (OSError, http.client.HTTPException) as error:
            outcome = type(error).__name__
        results.put((attack.__name__, time.monotonic() - start, outcome, leak))
        round_ += 1
        time.sleep(target.random.random() * 0.5)


def run_threads(work, count, policy, arguments):
    """In a process of its own: `count` threads of work(index, *arguments)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.sched_setscheduler(0, policy, os.sched_param(0))
    os.sched_setaffinity(0, CLIENT_CORES)
    threads = [threading.Thread(target=work, args=(i, *arguments), daemon=True) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Clients:
    """Processes of clients, and what they report."""

    def __init__(self, phase):
        self.phase = phase
        self.processes = []
        self.honest_results = multiprocessing.Queue()
        self.hostile_results = multiprocessing.Queue()
        self.honest = collections.defaultdict(list)   # phase -> (seconds, outcome)
        self.hostile = collections.defaultdict(list)  # attack -> (seconds, outcome)
        self.leaks = collections.Counter()
        self.last_right = time.monotonic()

    def start(self, work, count, policy, results, *arguments):
        process = multiprocessing.Process(target=run_threads, daemon=True, args=(
            work, count, policy, (self.phase, results, *arguments)))
        process.start()
        self.processes.append(process)

    def collect(self):
        with contextlib.suppress(queue.Empty):
            while True:
                phase, seconds, outcome = self.honest_results.get_nowait()
                self.honest[phase].append((seconds, outcome))
                if outcome == 'right':
                    self.last_right = time.monotonic()
        with contextlib.suppress(queue.Empty):
            while True:
                name, seconds, outcome, leak = self.hostile_results.get_nowait()
                self.hostile[name].append((seconds, outcome))
                self.leaks[name] += leak

    def stop(self):
        self.phase.value = -1
        end = time.monotonic() + 5
        while time.monotonic() < end and any(process.is_alive() for process in self.processes):
            self.collect()  # a process ends after its queue is read
            time.sleep(0.05)
        for process in self.processes:
            process.kill()
        self.collect()


# ---- Files ----

class Files:
    """A model's folder with files that no checkpoint should be, and secrets inside and outside of it."""

    def __init__(self, work):
        self.folder, self.outside = work / 'served', work / 'outside'
        self.folder.mkdir()
        self.outside.mkdir()
        for path in DEMO.iterdir():
            if path.is_file():
                shutil.copy(path, self.folder)
        self.model = self.folder / 'model.pth'
        self.next = self.folder / 'next.pth'
        self.model_is_whole = threading.Lock()
        self.bytes = self.model.read_bytes()
        self.next.write_bytes(self.bytes)
        for path in (self.folder / 'secret.pth', self.outside / 'secret'):
            path.write_text(attacks.SECRET * 10)
        for path in (self.folder / 'pipe.pth', self.outside / 'pipe'):
            os.mkfifo(path)
        shards = self.folder / 'shards'
        shutil.copytree(ROOT / 'tests' / 'golden' / 'hf-qwen3-sharded', shards)
        for shard in shards.glob('*-of-*.safetensors'):
            shard.unlink()
            os.mkfifo(shard)
        (self.folder / 'link.pth').symlink_to(self.outside / 'secret')
        (self.folder / 'empty.pth').touch()
        (self.folder / '\x1b[2Jname.pth').write_text('no checkpoint')
        with open(self.folder / 'sparse.pth', 'wb') as sparse:
            sparse.truncate(1 << 40)
        shutil.copy(self.model, self.folder / 'zeros-behind.pth')
        os.truncate(self.folder / 'zeros-behind.pth', 1 << 40)

    def rewrite(self, stop):
        """Rewrites checkpoints until the event is set, as a trainer does: in place, and by a new file of the same name."""
        os.sched_setaffinity(0, CLIENT_CORES)
        round_ = 0
        while not stop.wait(0.3):
            path = self.model if round_ % 3 == 0 else self.next
            with self.model_is_whole:
                if round_ % 2 == 0:
                    with open(path, 'r+b') as file:
                        file.truncate(len(self.bytes) // 2)
                        time.sleep(0.02)
                        file.write(self.bytes)
                else:
                    new = path.with_suffix('.new')
                    new.write_bytes(self.bytes)
                    new.rename(path)
            round_ += 1


# ---- Phases ----


class Soak:
    def __init__(self, options, work):
        self.options = options
        self.files = Files(work)
        self.texts = [Text(options.program, str(DEMO / 'model.pth'), prompt, seed, 8 + 4 * (seed % 5))
                      for seed, prompt in enumerate(PROMPTS * 2)]
        self.server = Server(options.program, self.files)
        self.phase = multiprocessing.Value('i', ALONE)
        self.clients = Clients(self.phase)
        self.lines = []

    def line(self, passed, name, found, expected):
        self.lines.append(Line(bool(passed), name, str(found), str(expected)))

    def go_on(self, seconds, until=lambda: False):
        """Lets the clients work; watches the server. Returns early, with True, once until() holds."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.server.watch()
            self.clients.collect()
            if until():
                return True
            if time.monotonic() - self.clients.last_right > SILENCE_SECONDS:
                self.server.restart(f'hung: no honest answer for {SILENCE_SECONDS} s')
                self.clients.last_right = time.monotonic()
            time.sleep(0.25)
        return until()

    def run(self):
        options = self.options
        self.server.watch()
        idle_descriptors = self.server.samples[-1][1]
        self.clients.start(be_honest, options.honest, os.SCHED_OTHER, self.clients.honest_results, self.server.port, self.texts)
        self.clients.start(be_hostile, options.hostile, os.SCHED_IDLE, self.clients.hostile_results, self.server.port,
                           str(self.files.folder), str(self.files.outside), options.seed, options.attacks)
        self.go_on(min(120, max(8, options.seconds / 5)))

        stop = threading.Event()
        rewriter = threading.Thread(target=self.files.rewrite, args=(stop,), daemon=True)
        rewriter.start()
        self.phase.value = TOGETHER
        self.server.samples.clear()
        self.go_on(max(8, options.seconds * 4 / 5))
        samples = list(self.server.samples)

        self.phase.value = CALM
        most = idle_descriptors + options.honest + 2
        calm = self.go_on(25, lambda: self.server.samples[-1][1] <= most)
        self.line(calm, 'descriptors come back', self.server.samples[-1][1], f'at most {most} within 25 s')
        self.end_under_attack()
        stop.set()
        rewriter.join()
        self.clients.stop()
        self.judge(samples)

    def end_under_attack(self):
        """SIGTERM, and kill -9, while all clients go on; each time the server is started again."""
        self.phase.value = ENDING
        self.go_on(3)
        seconds, status = self.server.terminate(30)
        self.line(status == 0 and seconds <= DRAIN_SECONDS + 1, 'SIGTERM ends it under attack',
                  f'{seconds:.1f} s, status {status}', f'{DRAIN_SECONDS + 1} s, status 0')
        self.server.start()
        self.go_on(3)
        self.server.process.kill()
        self.server.process.wait()
        start = time.monotonic()
        self.server.start()
        self.clients.collect()
        self.clients.last_right = start
        answered = self.go_on(10, lambda: self.clients.last_right > start)
        self.line(answered, 'after kill -9 it serves again', f'{time.monotonic() - start:.1f} s', 'at most 10 s')
        self.phase.value = CALM
        self.go_on(15, lambda: self.server.samples[-1][1] <= 2 * self.options.honest)
        self.clients.stop()
        seconds, status = self.server.terminate(30)
        self.line(status == 0 and seconds <= DRAIN_SECONDS + 1, 'SIGTERM ends it', f'{seconds:.1f} s, status {status}',
                  f'{DRAIN_SECONDS + 1} s, status 0')

    def judge(self, samples):
        honest = self.clients.honest
        counted = honest[ALONE] + honest[TOGETHER] + honest[CALM]
        outcomes = collections.Counter(outcome for _, outcome in counted)
        right, wrong = outcomes.pop('right', 0), outcomes.pop('wrong', 0)
        self.line(right and not wrong, 'honest texts have the bytes that they have alone', f'{right} right, {wrong} wrong',
                  '0 wrong')
        self.line(not outcomes, 'honest requests are answered', dict(outcomes) or 'all', 'all')
        self.line(not self.server.faults, 'the server neither ends nor hangs', self.server.faults or 'neither', 'neither')
        leaks = [name for name, count in self.clients.leaks.items() if count]
        self.line(not leaks, 'no answer quotes a file', leaks or 'none', 'none')
        self.line(not self.server.escapes, 'the log has no control characters', f'{self.server.escapes} lines', '0 lines')
        if self.options.unmeasured:
            return
        alone, together = (percentile([seconds for seconds, _ in honest[phase]], 0.99) for phase in (ALONE, TOGETHER))
        most = max(2 * alone, alone + PROMPT_STEP_SECONDS)
        self.line(0 < together <= most, "an honest client's p99 at most doubles, or grows by a step of a long prompt",
                  f'{1000 * together:.0f} ms after {1000 * alone:.0f} ms', f'at most {1000 * most:.0f} ms')
        memory, descriptors, threads = (list(column) for column in zip(*samples)) if samples else ([], [], [])
        self.lines.append(is_flat_line('memory in MB is', memory, MEGABYTE, 8 * MEGABYTE))
        self.lines.append(is_flat_line('descriptors are', descriptors, 1, 40))
        self.lines.append(is_flat_line('threads are', threads, 1, 4))

    def print_table(self):
        print(f'{"attack":28} {"times":>6} {"median s":>9} {"most s":>7}  answers')
        for name, results in sorted(self.clients.hostile.items()):
            seconds = [seconds for seconds, _ in results]
            answers = collections.Counter(outcome for _, outcome in results).most_common(5)
            print(f'{name:28} {len(results):6} {median(seconds):9.2f} {max(seconds):7.1f}  '
                  + ', '.join(f'{outcome}: {count}' for outcome, count in answers))
        print()
        for line in self.lines:
            print(f'{"pass" if line.passed else "FAIL"}  {line.name}: {line.found}, expected {line.expected}')


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program', nargs='?', default=str(ROOT / 'minimind'))
    parser.add_argument('--seconds', type=float, default=120, help='of the first two phases (default: 120)')
    parser.add_argument('--honest', type=int, default=32, help='clients (default: 32)')
    parser.add_argument('--hostile', type=int, default=32, help='clients (default: 32)')
    parser.add_argument('--attacks', default='', help='names and groups of attacks, separated by commas (default: all)')
    parser.add_argument('--seed', type=int, default=1, help='of what the hostile clients do (default: 1)')
    parser.add_argument('--unmeasured', action='store_true',
                        help='do not judge time and memory, as of a program that a sanitizer watches')
    options = parser.parse_args()
    options.program = str(pathlib.Path(options.program).resolve())
    attacks.chosen(options.attacks)
    return options


def main():
    options = read_options()
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(65536, limit[1]), limit[1]))
    with tempfile.TemporaryDirectory(prefix='minimind_soak_') as work:
        soak = Soak(options, pathlib.Path(work))
        try:
            soak.run()
        finally:
            soak.clients.stop()
            soak.server.process.kill()
        soak.print_table()
    return 0 if all(line.passed for line in soak.lines) else 1


if __name__ == '__main__':
    sys.exit(main())
