"""OpenAI's API on many machines: serve run serving:app model=/models/full_sft_768.pth replicas=4 threads=8

An application of Ray Serve. Each replica runs a `minimind serve` and hands all requests to it as they are, so that routes, streams
and errors are the same as of one server. A replica whose server has a full queue answers with status 429. When it is replaced
or scaled down, it gets no new requests and its server ends those that it has.

Arguments: model, replicas (1), threads of each replica (1), program (minimind), and options, the other options of the command
line of `minimind serve`, such as options="--type q8_0 --parallel 32". To update, deploy again with other arguments: Ray Serve
replaces one replica after the other.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
import tempfile
from typing import Any, AsyncIterator, Dict

import aiohttp
from ray import serve
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

START_SECONDS, DRAIN_SECONDS = 300, 60
QUEUE_OF_RAY = 10_000  # requests per replica: the server's own queue is shorter and answers with 429
# The other replicas would keep their weights.
OF_ONE_SERVER = ("/update_weights_from_disk", "/flush_cache", "/reset_prefix_cache")
PER_CONNECTION = ("connection", "content-length", "host", "keep-alive", "transfer-encoding", "date", "server")


def per_message(headers: Any) -> Dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in PER_CONNECTION}


@serve.deployment(
    max_ongoing_requests=QUEUE_OF_RAY, graceful_shutdown_timeout_s=DRAIN_SECONDS + 10, graceful_shutdown_wait_loop_s=0.5,
    health_check_period_s=2, health_check_timeout_s=10,
)  # fmt: skip
class Replica:
    def __init__(self, arguments: Dict[str, str]) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.socket = os.path.join(self.folder.name, "minimind")
        self.process = subprocess.Popen([
            arguments.get("program", "minimind"), "serve", "-q", "-m", arguments["model"], "--socket", self.socket,
            "--threads", arguments.get("threads", "1"), "--drain", str(DRAIN_SECONDS),
            *shlex.split(arguments.get("options", "")),
        ])  # fmt: skip
        self.client: aiohttp.ClientSession | None = None
        self.ready = asyncio.Event()

    def session(self) -> aiohttp.ClientSession:
        if self.client is None:
            connector = aiohttp.UnixConnector(self.socket, limit=0)
            timeout = aiohttp.ClientTimeout(total=None)
            self.client = aiohttp.ClientSession("http://localhost", connector=connector, timeout=timeout, auto_decompress=False)
        return self.client

    async def check_health(self) -> None:
        """Called by Ray Serve, which replaces a replica after an exception. The first call waits for the model."""
        for _ in range(10 * START_SECONDS if not self.ready.is_set() else 1):
            if self.process.poll() is not None:
                raise RuntimeError(f"minimind serve ended with status {self.process.returncode}; its output is in Ray's log")
            try:
                async with self.session().get("/health") as answer:
                    answer.raise_for_status()
                    self.ready.set()
                    return
            except aiohttp.ClientError as error:
                last = error
                await asyncio.sleep(0.1)
        raise last

    async def __call__(self, request: Request) -> Response:
        if not self.ready.is_set():
            await self.check_health()
        if request.url.path.rstrip("/") in OF_ONE_SERVER:
            return JSONResponse({"error": {"message": f"{request.url.path} is for one server; deploy again instead"}}, 403)
        path = request.url.path + ("?" + request.url.query if request.url.query else "")
        answer = await self.session().request(
            request.method, path, data=await request.body(), headers=per_message(request.headers), allow_redirects=False
        )
        return StreamingResponse(self.pieces(answer), answer.status, per_message(answer.headers))

    async def pieces(self, answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        """Ends the request if the client has left, because then Ray Serve closes the iterator."""
        try:
            async for piece in answer.content.iter_any():
                yield piece
        finally:
            answer.close()

    async def __del__(self) -> None:
        self.process.terminate()  # answers that run are finished first
        await asyncio.to_thread(self.process.wait)
        if self.client is not None:
            await self.client.close()


def app(arguments: Dict[str, str]) -> serve.Application:
    threads = int(arguments.get("threads", "1"))
    replica = Replica.options(num_replicas=int(arguments.get("replicas", "1")), ray_actor_options={"num_cpus": threads})
    return replica.bind(dict(arguments))
