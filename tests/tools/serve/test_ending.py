"""Tests how `minimind serve` ends, whatever it is doing, and what it may do; `make test-serve` runs them.

MINIMIND_PROGRAM names another program than ./minimind.
"""

import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import test_many_clients
from test_many_clients import PROGRAM, ROOT, Server, chat, request

DEMO = ROOT / 'weights' / 'demo'
# The goal is 0.1 s. A machine that runs other tests at the same time may be slower, but what this test finds would take seconds.
LONGEST = 1.0


class EndingTest(unittest.TestCase):
    def start(self, *options):
        server = Server(*options)
        self.addCleanup(server.process.kill)
        return server

    def ends(self, server):
        began = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(timeout=20)
        self.assertLess(time.monotonic() - began, LONGEST)

    def send(self, server, *arguments):
        connection = server.connect()
        self.addCleanup(connection.close)
        connection.sendall(request(*arguments))
        return connection

    def status(self, connection):
        return int(test_many_clients.read_all(connection).split()[1])

    def wait_until_busy(self, server):
        """Waits until another large request finds that it has to wait."""
        end = time.monotonic() + 20
        while time.monotonic() < end:
            with server.connect() as connection:
                connection.settimeout(0.2)
                connection.sendall(request('POST', '/tokenize', {'content': 'a ' * 20_000}))
                try:
                    connection.recv(65536)
                except TimeoutError:
                    return
        self.fail('the server is not busy')

    def test_while_it_loads_a_model(self):
        process = subprocess.Popen([PROGRAM, 'serve', '--port', '0'], stderr=subprocess.DEVNULL)
        self.addCleanup(process.kill)
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=20)
        self.assertLess(time.monotonic() - began, LONGEST)

    def test_while_nobody_asks(self):
        self.ends(self.start())

    def test_while_it_prepares_a_request(self):
        server = self.start('--max-text', '20000')
        messages = [{'role': 'user', 'content': 'a'}] * 300_000  # which take seconds
        large = [self.send(server, 'POST', '/apply-template', {'messages': messages}) for _ in range(3)]
        self.wait_until_busy(server)
        with server.connect() as small:  # does not wait for the large ones
            small.sendall(request('POST', '/v1/completions', {'prompt': '江', 'max_tokens': 1}, Connection='close'))
            self.assertEqual(self.status(small), 200)
        self.ends(server)
        self.assertEqual(self.status(large[-1]), 503)

    def test_while_new_weights_wait_for_texts_with_older_ones(self):
        server = self.start('--drain', '0')
        running = self.send(server, 'POST', '/v1/completions',
                            {'prompt': '江', 'max_tokens': 30000, 'ignore_eos': True, 'stream': True})
        running.recv(100)
        weights = {'model_path': str(DEMO / 'model.pth')}
        with server.connect() as update:
            update.sendall(request('POST', '/update_weights_from_disk', weights, Connection='close'))
            self.assertEqual(self.status(update), 200)  # the text goes on with the weights that it began with
        waiting = self.send(server, 'POST', '/update_weights_from_disk', weights)
        with server.connect() as one_too_many:
            one_too_many.sendall(request('POST', '/update_weights_from_disk', weights, Connection='close'))
            self.assertEqual(self.status(one_too_many), 429)
        with server.connect() as other:
            other.sendall(request('POST', '/v1/completions', {'prompt': '江', 'max_tokens': 1}, Connection='close'))
            self.assertEqual(self.status(other), 200)
        self.ends(server)
        self.assertEqual(self.status(waiting), 503)

    def test_a_stream_says_why_it_ends(self):
        server = self.start('--drain', '0')
        running = self.send(server, 'POST', '/v1/completions',
                            {'prompt': '江', 'max_tokens': 30000, 'ignore_eos': True, 'stream': True})
        running.recv(100)
        server.process.send_signal(signal.SIGTERM)
        rest = test_many_clients.read_all(running)
        self.assertIn(b'data: {"error": {"message": "the server is shutting down"', rest)
        self.assertTrue(rest.endswith(b'\r\n0\r\n\r\n'), rest[-200:])
        server.process.wait(timeout=20)

    def test_at_the_second_signal_while_a_text_runs(self):
        server = self.start()
        running = self.send(server, 'POST', '/v1/completions',
                            {'prompt': '江', 'max_tokens': 30000, 'ignore_eos': True, 'stream': True})
        running.recv(100)
        server.process.send_signal(signal.SIGTERM)
        with self.assertRaises(OSError):  # it has taken the signal when it takes no more connections
            while True:
                server.connect().close()
        self.assertIsNone(server.process.poll())
        self.ends(server)


class RightsTest(unittest.TestCase):
    def test_gives_up_rights_and_says_so(self):
        process = subprocess.Popen([PROGRAM, 'serve', '--port', '0'], stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        lines = []
        while not lines or 'serving at' not in lines[-1]:
            lines.append(process.stderr.readline())
        for task in pathlib.Path(f'/proc/{process.pid}/task').iterdir():
            self.assertIn('NoNewPrivs:\t1', (task / 'status').read_text())
        self.assertIn('confined', ''.join(lines))

    def test_writes_no_control_characters_of_clients_into_its_log(self):
        with tempfile.TemporaryDirectory() as name:
            bad = pathlib.Path(name) / 'a\x1b[2J\nforged.pth'
            bad.write_text('no checkpoint')
            server = Server('--weights-from', name)
            self.addCleanup(server.process.wait)
            self.addCleanup(server.process.kill)
            body = request('POST', '/update_weights_from_disk', {'model_path': str(bad)}, Connection='close')
            for sent in (body, b'GET /\x1b[2J%1b%0aforged HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n',
                         b'GET /%1b[2J%0aforged HTTP/1.1\r\nHost: \xff\r\nX: \x9b\r\nConnection: close\r\n\r\n'):
                with server.connect() as connection:
                    connection.sendall(sent)
                    test_many_clients.read_all(connection)
            server.process.send_signal(signal.SIGTERM)
            server.process.wait(timeout=20)
            log = server.process.stderr.read()
            self.assertIn(b'is neither a torch.save file', log)
            self.assertNotRegex(log, rb'[\x00-\x09\x0b-\x1f\x7f\x80-\x9f]')
            self.assertNotRegex(log, rb'(?m)^forged')

    def test_reads_the_code_of_the_tree_of_a_weights_folder(self):
        with tempfile.TemporaryDirectory() as name:
            tree = pathlib.Path(name)
            for folder in ('out', 'model'):
                (tree / folder).mkdir()
            shutil.copy(DEMO / 'model.pth', tree / 'out')
            (tree / 'model' / 'model_minimind.py').write_text(
                'class MiniMindConfig:\n    rope_theta = 1e6\nclass Attention:\n    q_norm = 1\n')
            server = Server('--weights-from', str(tree / 'out'))
            self.addCleanup(server.process.wait)
            self.addCleanup(server.process.kill)
            status, text = server.ask('POST', '/update_weights_from_disk',
                                      {'model_path': str(tree / 'out' / 'model.pth')})
            self.assertEqual(status, 200, text)

    def test_reads_no_file_that_a_later_link_leads_to(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            shutil.copytree(DEMO, folder / 'models')
            shutil.copy(DEMO / 'model.pth', folder / 'outside.pth')
            shutil.copy(DEMO / 'model.pth', folder / 'models' / 'other.pth')
            for option, status in (('--no-sandbox', 200), ('--queue=1', 404)):
                server = Server('-m', str(folder / 'models'), option)
                self.addCleanup(server.process.wait)
                self.addCleanup(server.process.kill)
                if 'not confined' in server.started:
                    self.skipTest('the system has no Landlock: the sandbox is not tested')
                (folder / 'models' / 'later.pth').symlink_to(folder / 'outside.pth')
                self.assertEqual(server.ask('POST', '/v1/chat/completions', chat(model='other'))[0], 200)
                found, text = server.ask('POST', '/v1/chat/completions', chat(model='later', max_tokens=1))
                self.assertIn(found, (status, 400 if status == 404 else status), text)
                (folder / 'models' / 'later.pth').unlink()


if __name__ == '__main__':
    unittest.main()
