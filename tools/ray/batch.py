"""Answers many requests on many machines: python batch.py IN OUT --model out/full_sft_768.pth --workers 4 --threads 8

IN: JSONL as OpenAI's batch API and `minimind batch` take it, or Parquet with the same names as columns; a file, a folder or a
pattern. A request has a custom_id and a body, or the fields of a body: prompt, or messages and tools, with options of a text.
OUT: a .jsonl file in the order of IN, or a folder for Parquet. Each request has one result: custom_id with text or message,
finish_reason, prompt_tokens and tokens, or with error.

Each worker is an actor of Ray that holds a minimind_cpp.Model. Rows of a worker that dies are answered again by another. A text
depends on its request and --seed alone, not on the workers: a request without a seed has that of --seed and its custom_id.
Workers open MODEL under the same path on each machine.
"""

from __future__ import annotations

import argparse
import json
import os
import zlib
from typing import Any, Dict, Iterator, List, Optional, Tuple

import pyarrow as pa
import ray
import ray.data

LITTLE = 0.1  # of a core, for reading and writing: workers may have reserved all cores, and the others must run beside them
BLOCKS_PER_WORKER = 8  # so that workers end together
IGNORED = ("model", "user", "metadata", "stream", "store")  # fields of a body that do not change its text


class Worker:
    """Answers tables of requests."""

    def __init__(self, model: str, model_options: Dict[str, Any], options: Dict[str, Any], seed: int) -> None:
        from minimind_cpp import Model

        self.model = Model(model, **model_options)
        self.options, self.seed = options, seed

    def __call__(self, table: pa.Table) -> Dict[str, List[str]]:
        requests = [read_request(row, self.seed) for row in table.to_pylist()]
        results = self.model.batch((self.with_ids(body or {}) for _, body, _ in requests), **self.options)
        lines = [
            {"custom_id": custom_id, **({"error": error} if error else result)}
            for (custom_id, _, error), result in zip(requests, results)
        ]
        return {"line": [json.dumps(line, ensure_ascii=False) for line in lines]}

    def with_ids(self, body: Dict[str, Any]) -> Dict[str, Any]:
        """A text to complete is continued as it is, as OpenAI's API does, without the bos_token of Model.generate."""
        if not isinstance(body.get("prompt"), str):
            return body
        return {**body, "prompt": self.model.tokenizer.encode(body["prompt"], add_special_tokens=False)}


def read_request(row: Dict[str, Any], seed: int) -> Tuple[Optional[str], Optional[Dict[str, Any]], str]:
    """The custom_id, the body with its seed, and what is wrong with the request."""
    custom_id = None
    try:
        request = json.loads(row["text"]) if list(row) == ["text"] else without_nulls(row)
        custom_id = request.pop("custom_id", None) if isinstance(request, dict) else None
        if not isinstance(custom_id, str):
            raise ValueError("the request has no custom_id, expected an object with one that is a string")
        body = request.get("body", request)
        body = json.loads(body) if isinstance(body, str) else dict(body)  # a column of Parquet may be JSON
        if "max_completion_tokens" in body:
            body["max_tokens"] = body.pop("max_completion_tokens")
        body.setdefault("seed", seed + zlib.crc32(custom_id.encode()))
        return custom_id, {name: value for name, value in body.items() if name not in IGNORED}, ""
    except (TypeError, ValueError) as error:
        return custom_id, None, str(error)


def without_nulls(value: Any) -> Any:
    """Without the fields that only other rows of a Parquet file have."""
    if isinstance(value, dict):
        return {name: without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [without_nulls(inner) for inner in value] if isinstance(value, list) else value


def read(path: str, workers: int) -> ray.data.Dataset:
    """Rows with the columns of Parquet, or of one column `text`, a line of JSON."""
    files = os.listdir(path) if os.path.isdir(path) else [path]
    reader = ray.data.read_parquet if any(file.endswith(".parquet") for file in files) else ray.data.read_text
    return reader(path, num_cpus=LITTLE, override_num_blocks=BLOCKS_PER_WORKER * workers)


def answer(
    rows: ray.data.Dataset, model: str, *, workers: int = 1, threads: int = 1, batch_rows: int = 256, seed: int = 0,
    model_options: Optional[Dict[str, Any]] = None, **options: Any,
) -> ray.data.Dataset:  # fmt: skip
    """A row for each request with the column `line`, the JSON of its result."""
    settings = {"model_options": {"threads": threads, **(model_options or {})}, "options": options, "seed": seed}
    return rows.map_batches(
        Worker, fn_constructor_args=[model], fn_constructor_kwargs=settings, batch_format="pyarrow", batch_size=batch_rows,
        num_cpus=threads - LITTLE, compute=ray.data.ActorPoolStrategy(size=workers),
    )  # fmt: skip


def lines_of(results: ray.data.Dataset) -> Iterator[str]:
    for batch in results.iter_batches(batch_size=None, batch_format="pyarrow"):
        yield from batch["line"].to_pylist()


def write(results: ray.data.Dataset, path: str) -> None:
    if not path.endswith(".jsonl"):
        rows = results.map(lambda row: json.loads(row["line"]), num_cpus=LITTLE)
        rows.write_parquet(path, ray_remote_args={"num_cpus": LITTLE})
        return
    part = path + ".part"
    with open(part, "w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in lines_of(results))
    os.replace(part, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input", metavar="IN")
    parser.add_argument("output", metavar="OUT")
    parser.add_argument("--model", required=True)
    parser.add_argument("--lora", action="append", default=[], metavar="PATH[:SCALE]")
    parser.add_argument("--tokenizer")
    parser.add_argument("--type", help="of the weights, such as q8_0")
    parser.add_argument("--workers", type=int, default=1, help="actors, on whatever machines Ray has")
    parser.add_argument("--threads", type=int, default=1, help="of each worker: the cores that Ray reserves for it")
    parser.add_argument("--rows", type=int, default=256, help="that a worker takes at once")
    parser.add_argument("--max-tokens", type=int, default=512)
    parser.add_argument("--temperature", type=float, default=0.85)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    os.environ.setdefault("RAY_worker_niceness", "0")  # of a cluster that starts here; see README.md
    ray.data.DataContext.get_current().execution_options.preserve_order = True
    results = answer(
        read(options.input, options.workers), os.path.abspath(options.model), workers=options.workers, threads=options.threads,
        batch_rows=options.rows, seed=options.seed, max_tokens=options.max_tokens, temperature=options.temperature,
        model_options={"lora": options.lora, "tokenizer": options.tokenizer, "type": options.type},
    )  # fmt: skip
    write(results, options.output)


if __name__ == "__main__":
    main()
