"""Answers a file of requests on many machines: python batch.py IN -o OUT --model out/full_sft_768.pth --workers 4 --threads 8

IN comes first. All other options are those of `minimind batch`, such as --temperature 0, and so are the requests and the results:
parts of IN are tasks of Ray, each of which is answered by the program. A text depends on its line and --seed alone, not on the
workers. The parts of a worker that dies are answered again by another. Models and other files that the options name are opened
under the same path on each machine.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import tempfile
from typing import BinaryIO, Dict, Iterator, List, Sequence, Tuple

import ray
import ray.exceptions

PARTS_PER_WORKER = 4  # that may wait for an earlier one, whose results are written first


@ray.remote(max_retries=10)
def answer_part(requests: bytes, first_line: int, written: float, options: Sequence[str]) -> Tuple[bytes, bytes]:
    """The lines of results and of errors for a part of the input, which starts at this line of the whole."""
    from minimind_cpp import run

    with tempfile.TemporaryDirectory() as folder:
        source, results, errors = (os.path.join(folder, name) for name in ("in", "results", "errors"))
        with open(source, "wb") as file:
            file.write(requests)
        os.utime(source, (written, written))  # which is `created` of the results
        run("batch", source, "-q", "-o", results, "--errors", errors, "--first-line", str(first_line), *options)
        return read(results), read(errors)


def read(path: str) -> bytes:
    """Of a file that is there only if it has lines."""
    if not os.path.exists(path):
        return b""
    with open(path, "rb") as file:
        return file.read()


def parts_of(path: str, rows: int) -> Iterator[Tuple[bytes, int]]:
    """Parts of up to so many requests, each with the number of its first line."""
    lines: List[bytes] = []
    first, requests = 1, 0
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            if line.rstrip(b"\n") in (b"", b"\r") and requests == 0:
                first = number + 1
                continue
            lines.append(line)
            requests += line.rstrip(b"\n") not in (b"", b"\r")
            if requests == rows:
                yield b"".join(lines), first
                lines, first, requests = [], number + 1, 0
    if lines:
        yield b"".join(lines), first


def answer(path: str, options: Sequence[str], *, workers: int, threads: int, rows: int) -> Iterator[Tuple[bytes, bytes]]:
    """The lines of results and of errors of each part, in the order of the input."""
    task = answer_part.options(num_cpus=threads)
    arguments = [*options, "--threads", str(threads)]
    written_at = os.path.getmtime(path)
    parts = enumerate(parts_of(path, rows))
    running: Dict[ray.ObjectRef, int] = {}
    answered: Dict[int, Tuple[bytes, bytes]] = {}
    written = started = 0
    while True:
        while len(running) < workers and started - written < PARTS_PER_WORKER * workers:
            index, part = next(parts, (None, None))
            if index is None:
                break
            running[task.remote(*part, written_at, arguments)] = index
            started += 1
        if not running:
            return
        (ended,), _ = ray.wait(list(running))
        answered[running.pop(ended)] = ray.get(ended)
        while written in answered:
            yield answered.pop(written)
            written += 1


def write(results: Iterator[Tuple[bytes, bytes]], output: BinaryIO, errors_path: str) -> None:
    """The file of errors appears with the first error."""
    errors_file = None
    for lines, errors in results:
        output.write(lines)
        if errors:
            errors_file = errors_file or open(errors_path, "wb")
            errors_file.write(errors)
    if errors_file:
        errors_file.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("input", metavar="IN")
    parser.add_argument("-o", "--output", required=True, metavar="OUT")
    parser.add_argument("--errors", help="(default: OUT.errors)")
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("--seed", type=int, default=secrets.randbits(32))
    parser.add_argument("--workers", type=int, default=1, help="tasks at once, on whatever machines Ray has")
    parser.add_argument("-t", "--threads", type=int, default=1, help="of each worker: the cores that Ray reserves for it")
    parser.add_argument("--rows", type=int, default=256, help="requests that a worker takes at once")
    given, options = parser.parse_known_args()
    os.environ.setdefault("RAY_worker_niceness", "0")  # of a cluster that starts here; see README.md
    options += ["--model", os.path.abspath(given.model), "--seed", str(given.seed)]
    part = given.output + ".part"
    try:
        results = answer(given.input, options, workers=given.workers, threads=given.threads, rows=given.rows)
        with open(part, "wb") as file:
            write(results, file, given.errors or given.output + ".errors")
    except OSError as error:
        sys.exit(f"{error.filename}: {error.strerror}")
    except ray.exceptions.RayTaskError as error:
        sys.exit(str(error.cause))
    os.replace(part, given.output)


if __name__ == "__main__":
    main()
