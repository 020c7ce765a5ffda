"""Tests `minimind serve` with a thousand clients that misbehave; `make test-serve` runs them.

They stay connected and send nothing, send half a header, ask for the page and read nothing, or disconnect in the middle
of an answer. Meanwhile others are answered as usual. MINIMIND_PROGRAM names another program than ./minimind.
"""

import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = os.environ.get('MINIMIND_PROGRAM', str(ROOT / 'minimind'))
CLIENTS = 1000


def request(method, path, body=None, **fields):
    data = b'' if body is None else json.dumps(body).encode()
    lines = [f'{method} {path} HTTP/1.1', 'Host: localhost', f'Content-Length: {len(data)}']
    if data:
        lines.append('Content-Type: application/json')
    lines += [f'{name}: {value}' for name, value in fields.items()]
    return '\r\n'.join(lines + ['', '']).encode() + data


def chat(**fields):
    return {'messages': [{'role': 'user', 'content': '写一首诗'}], 'max_tokens': 20, **fields}


def read_all(connection):
    received = b''
    while piece := connection.recv(65536):
        received += piece
    return received


class Server:
    def __init__(self, *options):
        self.process = subprocess.Popen([PROGRAM, 'serve', '--port', '0', *options], stderr=subprocess.PIPE)
        self.started = ''  # what it has printed so far
        while not (found := re.search(rb'http://127\.0\.0\.1:(\d+)', line := self.next_line())):
            self.started += line.decode()
        self.port = int(found[1])
        os.set_blocking(self.process.stderr.fileno(), False)

    def next_line(self):
        line = self.process.stderr.readline()
        if not line:
            raise AssertionError('the server ended')
        return line

    def connect(self, receive_buffer=None):
        connection = socket.socket()
        if receive_buffer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.settimeout(60)
        connection.connect(('127.0.0.1', self.port))
        return connection

    def ask(self, *arguments, **fields):
        with self.connect() as connection:
            connection.sendall(request(*arguments, Connection='close', **fields))
            received = read_all(connection)
        with contextlib.suppress(OSError):
            self.process.stderr.read()  # the access log
        return int(received.split()[1]), received

    def memory(self):
        """Returns the resident memory in MB."""
        status = pathlib.Path(f'/proc/{self.process.pid}/status').read_text()
        return int(re.search(r'VmRSS:\s+(\d+)', status)[1]) / 1024

    def descriptors(self):
        return len(list(pathlib.Path(f'/proc/{self.process.pid}/fd').iterdir()))


class ManyClientsTest(unittest.TestCase):
    def setUp(self):
        self.server = Server('--header-timeout', '5', '--idle-timeout', '5', '--parallel', '4', '-t', '1')
        self.addCleanup(self.server.process.stderr.close)
        self.addCleanup(self.server.process.wait)
        self.addCleanup(self.server.process.kill)

    def assert_serves(self):
        status, answer = self.server.ask('POST', '/v1/chat/completions', chat())
        self.assertEqual(status, 200, answer)
        times = []
        for _ in range(50):
            start = time.monotonic()
            self.assertEqual(self.server.ask('GET', '/health')[0], 200)
            times.append(time.monotonic() - start)
        self.assertLess(sorted(times)[45], 0.1)

    def assert_all_gone(self, before):
        end = time.monotonic() + 40
        while self.server.descriptors() > before and time.monotonic() < end:
            time.sleep(0.1)
        self.assertLessEqual(self.server.descriptors(), before)

    def test_clients_that_send_too_little_or_read_nothing(self):
        before, memory = self.server.descriptors(), self.server.memory()
        clients = []
        for i in range(CLIENTS):
            clients.append(self.server.connect(receive_buffer=4096))
            if i % 4 == 1:
                clients[-1].sendall(b'POST /v1/chat/completions HTTP/1.1\r\nHost: loc')
            elif i % 4 == 2:
                clients[-1].sendall(request('POST', '/v1/chat/completions', chat())[:-10])
            elif i % 4 == 3:
                clients[-1].sendall(request('GET', '/') * 20)
        self.assert_serves()
        self.assertLess(self.server.memory() - memory, 300)
        self.assertEqual(clients[0].recv(1), b'')  # idle: closed without an answer, after 5 s
        self.assertTrue(clients[1].recv(100).startswith(b'HTTP/1.1 408 '))
        self.assert_serves()
        for client in clients:
            client.close()
        self.assert_all_gone(before)

    def test_clients_that_disconnect_in_the_middle(self):
        before, clients, tokens = self.server.descriptors(), CLIENTS // 10, 1000
        for i in range(clients):
            client = self.server.connect()
            client.sendall(request('POST', '/v1/chat/completions', chat(stream=True, max_tokens=tokens, ignore_eos=True)))
            if i % 2:
                self.assertTrue(client.recv(10))
            client.close()
        self.assert_serves()
        self.assert_all_gone(before)
        end = time.monotonic() + 60
        while self.count('texts_running') + self.count('texts_waiting') > 0:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        # Those that waited never started, and those that ran were not written to their ends.
        self.assertLess(self.count('generated_tokens_total'), clients * tokens / 10)

    def test_streams_that_nobody_reads(self):
        # Answers of 0.5 to 2 MB each, of which the kernel keeps a third of a MB, and together more than they may take.
        count, tokens = 300, 1000
        kv_memory, answer_memory, scores_and_heap = 100, 256, 64  # MB
        server = self.server = Server('--parallel', '32', '--queue', '2000', '--kv-memory', str(kv_memory))
        for clean in (server.process.stderr.close, server.process.wait, server.process.kill):
            self.addCleanup(clean)
        before, memory = server.descriptors(), server.memory()
        clients = []
        for _ in range(count):
            clients.append(server.connect(receive_buffer=4096))
            clients[-1].sendall(request('POST', '/v1/chat/completions', chat(
                stream=True, max_tokens=tokens, ignore_eos=True, logprobs=True, top_logprobs=20)))
        end, most = time.monotonic() + 900, 0
        while self.count('texts_running') + self.count('texts_waiting') > 0:
            self.assertLess(time.monotonic(), end)
            most = max(most, server.memory())
            time.sleep(0.2)
        self.assertLess(most - memory, kv_memory + answer_memory + scores_and_heap)
        self.assert_serves()
        # Each was dropped, not answered to its end: reading what has arrived ends in a reset.
        self.assert_all_gone(before)
        for client in clients:
            with self.assertRaises(ConnectionResetError):
                read_all(client)
            client.close()

    def count(self, name):
        """Returns a number of /metrics, which answers at once."""
        start = time.monotonic()
        answer = self.server.ask('GET', '/metrics')[1].decode()
        self.assertLess(time.monotonic() - start, 1)
        return int(re.search(rf'^minimind_{name} (\d+)', answer, re.M)[1])

    def test_sigterm_lets_a_stream_end(self):
        with self.server.connect() as client:
            client.sendall(request('POST', '/v1/chat/completions', chat(stream=True, max_tokens=200)))
            received = client.recv(1000)
            self.server.process.send_signal(signal.SIGTERM)
            received += read_all(client)
        self.assertIn(b'data: [DONE]', received)
        self.assertTrue(received.endswith(b'0\r\n\r\n'))
        self.assertEqual(self.server.process.wait(timeout=20), 0)


if __name__ == '__main__':
    unittest.main()
