"""Sends streams of completions to a server of OpenAI's API and times every piece: the clients of serve_peers.py.

One process with one thread holds all clients on raw sockets, and looks at what it has received only after the end, because
every microsecond that it takes is missing on the servers' cores. Needs only Python.
"""

import contextlib
import dataclasses
import json
import selectors
import socket
import statistics
import time


LAST_CHUNK = b"\r\n0\r\n\r\n"


@dataclasses.dataclass
class Answer:
    """A streamed answer: when it was requested, and what arrived when."""

    asked: float
    pieces: list[tuple[float, bytes]] = dataclasses.field(default_factory=list)

    def events(self) -> list[tuple[float, dict]]:
        """Returns the events with text, each with the time of its last byte, and the one with the usage."""
        stream = b"".join(piece for _, piece in self.pieces)
        ends, size = [], 0
        for at, piece in self.pieces:
            size += len(piece)
            ends.append((size, at))
        found, position, index = [], 0, 0
        while (begin := stream.find(b"data: {", position)) >= 0:
            position = stream.index(b"\n", begin)
            while ends[index][0] <= position:
                index += 1
            event = json.loads(stream[begin + 6 : position])
            if "error" in event:
                raise RuntimeError(f"the server answers {event['error']}")
            found.append((ends[index][1], event))
        return found


@dataclasses.dataclass
class Timing:
    """What clients together have measured. Times are in seconds."""

    tokens: int
    seconds: float
    first: list[float]  # from a request to its first text
    between: list[float]  # from one piece of text to the next; its tokens share this time if the events have their ids

    def report(self) -> dict:
        return {
            "tokens_per_second": round(self.tokens / self.seconds, 1),
            "first_ms": {name: round(1e3 * value, 2) for name, value in percentiles(self.first).items()},
            "between_ms": {"mean": round(1e3 * statistics.fmean(self.between), 3),
                           "p99": round(1e3 * percentiles(self.between)["p99"], 3)},
        }


def percentiles(values: list[float]) -> dict[str, float]:
    """Returns p50 and p99: the smallest values that so many percent do not exceed."""
    ordered = sorted(values)
    return {"p50": statistics.median(ordered), "p99": ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]}


def request(path: str, body: dict) -> bytes:
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


class Client:
    """One after the other, asks its requests and reads their answers, each on a new connection."""

    def __init__(self, port: int, requests: list[bytes]):
        self.port, self.requests, self.answers, self.socket = port, iter(requests), [], None

    def close(self) -> None:
        if self.socket:
            self.socket.close()

    def ask(self, selector: selectors.BaseSelector) -> bool:
        """Returns false if there are no more requests."""
        data = next(self.requests, None)
        if data is None:
            return False
        self.tail = b""
        self.answers.append(Answer(time.perf_counter()))
        self.socket = socket.create_connection(("127.0.0.1", self.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.sendall(data)
        selector.register(self.socket, selectors.EVENT_READ, self)
        return True

    def read(self, selector: selectors.BaseSelector) -> bool:
        """Returns false if the last answer has ended."""
        piece = self.socket.recv(1 << 16)
        if not piece or piece.startswith((b"HTTP/1.1 4", b"HTTP/1.1 5")):
            raise RuntimeError(f"the server rejects a request or closes the connection: {piece.decode()}")
        self.answers[-1].pieces.append((time.perf_counter(), piece))
        self.tail = (self.tail + piece)[-len(LAST_CHUNK) :]
        if self.tail != LAST_CHUNK:
            return True
        selector.unregister(self.socket)
        self.socket.close()
        return self.ask(selector)


def run(port: int, path: str, bodies: list[list[dict]]) -> list[list[Answer]]:
    """Sends the requests of each client, all clients at once. Returns the answers of each."""
    clients = [Client(port, [request(path, body) for body in of_client]) for of_client in bodies]
    with selectors.EpollSelector() as selector, contextlib.ExitStack() as sockets:
        for client in clients:
            sockets.callback(client.close)
        running = sum(client.ask(selector) for client in clients)
        while running:
            for key, _ in selector.select():
                if not key.data.read(selector):
                    running -= 1
    return [client.answers for client in clients]


def text_of(event: dict) -> str:
    if not event.get("choices"):
        return ""
    choice = event["choices"][0]
    return choice.get("text") or choice.get("delta", {}).get("content") or ""


def tokens_of(event: dict) -> int:
    """Returns how many tokens a piece of text has, which is 1 if the event does not say it."""
    return len(event["choices"][0].get("token_ids") or [0])


def timing(clients: list[list[Answer]]) -> Timing:
    answers = [answer for of_client in clients for answer in of_client]
    begin, end = min(answer.asked for answer in answers), 0.0
    result = Timing(0, 0.0, [], [])
    for answer in answers:
        events = answer.events()
        usage = next(event["usage"] for _, event in events if event.get("usage"))
        result.tokens += usage["completion_tokens"]
        pieces = [(at, tokens_of(event)) for at, event in events if text_of(event)]
        result.first.append(pieces[0][0] - answer.asked)
        for (earlier, _), (later, tokens) in zip(pieces, pieces[1:]):
            result.between += tokens * [(later - earlier) / tokens]
        end = max(end, answer.pieces[-1][0])
    result.seconds = end - begin
    return result
