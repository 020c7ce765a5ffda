"""Tests the clients of serve_peers.py against a server of a few lines."""

import json
import socket
import threading
import unittest

import load


def event(**fields):
    return b"data: " + json.dumps(fields).encode() + b"\n\n"


def text(piece):
    return event(choices=[{"index": 0, "text": piece}])


USAGE = event(choices=[], usage={"completion_tokens": 3})


class Server:
    """Answers each connection with the pieces, each as a chunk of HTTP. `requests` has what it was sent."""

    def __init__(self, *pieces, head=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"):
        self.pieces, self.head, self.requests = pieces, head, []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                connection = self.socket.accept()[0]
            except OSError:
                return
            with connection:
                self.requests.append(connection.recv(1 << 16))
                connection.sendall(self.head)
                for piece in self.pieces:
                    connection.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
                connection.sendall(b"0\r\n\r\n")


class LoadTest(unittest.TestCase):
    def serve(self, *pieces, **fields):
        server = Server(*pieces, **fields)
        self.addCleanup(server.socket.close)
        return server

    def test_every_client_sends_its_requests_and_gets_their_answers(self):
        server = self.serve(text("a"), text("b"), USAGE, b"data: [DONE]\n\n")
        clients = load.run(server.port, "/v1/completions", [[{"prompt": [i, k]} for k in range(3)] for i in range(2)])
        self.assertEqual([len(answers) for answers in clients], [3, 3])
        for answer in clients[0] + clients[1]:
            self.assertEqual([load.text_of(found) for _, found in answer.events()], ["a", "b", ""])
        self.assertEqual(sorted(json.loads(sent.partition(b"\r\n\r\n")[2])["prompt"] for sent in server.requests),
                         [[i, k] for i in range(2) for k in range(3)])

    def test_times_between_tokens_are_those_of_each_token_of_a_piece(self):
        def at(time, *ids):
            return time, event(choices=[{"index": 0, "text": "a", **({"token_ids": ids} if ids else {})}])

        def between(*pieces):
            answer = load.Answer(0, [*pieces, (9, USAGE)])
            return load.timing([[answer]]).between

        self.assertEqual(between(at(1, 5), at(2, 6), at(4, 7, 8)), [1, 1, 1])
        self.assertEqual(between(at(1), at(2), at(4)), [1, 2])

    def test_rejected_requests_and_errors_in_streams_are_raised(self):
        server = self.serve(head=b"HTTP/1.1 429 Too Many Requests\r\n\r\n")
        with self.assertRaisesRegex(RuntimeError, "rejects"):
            load.run(server.port, "/", [[{}]])
        server = self.serve(text("a"), event(error={"message": "broken"}))
        with self.assertRaisesRegex(RuntimeError, "broken"):
            load.run(server.port, "/", [[{}]])[0][0].events()

    def test_an_event_has_the_time_of_its_last_byte(self):
        first, second = text("a"), text("b")
        answer = load.Answer(0.0, [(1.0, first[:10]), (2.0, first[10:] + second[:5]), (3.0, second[5:])])
        self.assertEqual([(at, load.text_of(found)) for at, found in answer.events()], [(2.0, "a"), (3.0, "b")])

    def test_timing_counts_from_the_first_request_to_the_last_byte(self):
        answers = [load.Answer(1.0, [(1.5, text("a")), (1.7, text("b")), (2.0, USAGE)]),
                   load.Answer(2.0, [(2.1, text("a")), (3.0, text("b") + USAGE)])]
        timing = load.timing([answers[:1], answers[1:]])
        self.assertEqual((timing.tokens, timing.seconds), (6, 2.0))
        for found, expected in zip(timing.first + timing.between, [0.5, 0.1, 0.2, 0.9]):
            self.assertAlmostEqual(found, expected)
        self.assertEqual(timing.report()["tokens_per_second"], 3.0)

    def test_percentiles_of_few_and_many(self):
        self.assertEqual(load.percentiles([2.0]), {"p50": 2.0, "p99": 2.0})
        self.assertEqual(load.percentiles([float(i) for i in range(1000)]), {"p50": 499.5, "p99": 990.0})

    def test_text_is_that_of_either_kind_of_completion(self):
        self.assertEqual(load.text_of({"choices": [{"delta": {"content": "c"}}]}), "c")
        self.assertEqual(load.text_of({"choices": [{"delta": {"role": "assistant"}}]}), "")
        self.assertEqual(load.text_of({"choices": []}), "")


if __name__ == "__main__":
    unittest.main()
