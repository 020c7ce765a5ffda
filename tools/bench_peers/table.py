"""The measurements, as a Markdown table and as JSON, and pages that have tables. Needs only Python."""

import json
import statistics
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

OURS = "minimind"


@dataclass(frozen=True)
class Row:
    """One test of one model in one type, in which the engines are compared."""

    model: str
    dtype: str
    test: str


@dataclass
class Measurements:
    """Tokens per second: every sample of each engine in each row. Rows keep the order in which they were added."""

    samples: dict[Row, dict[str, list[float]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))

    def add(self, model: str, dtype: str, engine: str, results: list[dict]) -> None:
        """Adds `results`, in the form of `minimind bench --json`."""
        for result in results:
            row = Row(model, dtype, name_of(result))
            self.samples[row][engine] += result["tokens_per_second"]["samples"]


def name_of(result: dict) -> str:
    depth = f" after {result['depth']:,}" if result["depth"] else ""
    texts = f"{result['texts']} x " if result.get("texts", 1) > 1 else ""
    shared = " shared" if result.get("shared_prompt") else ""
    busy = f" beside {result['busy']} busy" if result.get("busy") else ""
    return f"{texts}{result['test']} {result['tokens']:,}{depth}{shared}{busy}"


def beside_shared(peer: list[dict], ours: list[dict]) -> list[dict]:
    """Returns a peer's results, and them again for each of our tests in which the texts share a prompt: a peer has one way."""
    def same(test: dict) -> tuple:
        return test["test"], test["tokens"], test["depth"], test.get("texts", 1)
    shared = [same(test) for test in ours if test.get("shared_prompt")]
    return peer + [result | {"shared_prompt": True} for result in peer if same(result) in shared]


def faster(first: list[dict], *others: list[dict]) -> list[dict]:
    """Returns for each test the result with the highest median."""
    return [max(same, key=lambda result: statistics.median(result["tokens_per_second"]["samples"]))
            for same in zip(first, *others, strict=True)]


def best_peer(medians: dict[str, float]) -> float | None:
    """Returns the highest median of a peer; None if there is none."""
    return max((median for engine, median in medians.items() if engine != OURS), default=None)


def ratio_to_best_peer(medians: dict[str, float]) -> float | None:
    """Returns our median divided by the best peer's; None if either is missing."""
    best = best_peer(medians)
    return medians[OURS] / best if best is not None and OURS in medians else None


def speed(median: float | None) -> str:
    """Formats a speed with at least three digits, and no decimals from 100 on."""
    if median is None:
        return ""
    return f"{median:,.0f}" if median >= 100 else f"{median:.3g}"


def medians_of(samples: dict[str, list[float]]) -> dict[str, float]:
    return {engine: statistics.median(numbers) for engine, numbers in samples.items() if numbers}


def results(measurements: Measurements) -> list[dict]:
    """Returns the medians of every row, in the form of results.json."""
    return [
        {"model": row.model, "type": row.dtype, "test": row.test,
         "medians": {engine: round(median, 1) for engine, median in medians_of(samples).items()}}
        for row, samples in measurements.samples.items()
    ]


def with_kept(report: dict, older: dict) -> dict:
    """Returns the report with the tests that only the older one has, which must be of the same machine and versions."""
    for key in ("machine", "cores", "threads", "kernels", "samples", "rounds", "versions"):
        if report[key] != older[key]:
            raise SystemExit(f"{key} is {report[key]}, expected {older[key]} as in the tests to keep")
    measured = [(row["model"], row["type"], row["test"]) for row in report["results"]]
    kept = [row for row in older["results"] if (row["model"], row["type"], row["test"]) not in measured]
    return report | {
        "commands": list(dict.fromkeys(older["commands"] + report["commands"])),
        "not_loaded": list(dict.fromkeys(older["not_loaded"] + report["not_loaded"])),
        "results": kept + report["results"],
    }


def json_text(report: dict) -> str:
    """Formats a report with one line for each test."""
    rows = ",\n    ".join(json.dumps(row) for row in report["results"])
    return json.dumps(report | {"results": []}, indent=2).replace('"results": []', f'"results": [\n    {rows}\n  ]') + "\n"


def markdown(measurements: Measurements, engines: list[str]) -> str:
    lines = [
        f"| model, type | test | {' | '.join(engines)} | {OURS} / best peer |",
        f"|---|---|{'---|' * len(engines)}---|",
    ]
    for row, samples in measurements.samples.items():
        medians = medians_of(samples)
        ratio = ratio_to_best_peer(medians)
        cells = [speed(medians.get(engine)) for engine in engines]
        cells += ["" if ratio is None else f"{ratio:.2f}"]
        lines.append(f"| {row.model} {row.dtype} | {row.test} | {' | '.join(cells)} |")
    return "\n".join(lines)


def between(page: str, begin: str, text: str, end: str) -> str:
    """Returns the page with the text between its markers."""
    if begin not in page or end not in page:
        raise SystemExit(f"the page has no markers {begin.strip()} and {end.strip()}; add them where the tables belong")
    return page.partition(begin)[0] + begin + text + end + page.partition(end)[2]


def in_both_languages(page: str, markers: list[tuple[str, str]], text: Callable[[bool], str]) -> str:
    """Returns the page with text(chinese) between the markers of English and between those of Chinese."""
    for chinese, (begin, end) in zip((False, True), markers, strict=True):
        page = between(page, begin, text(chinese), end)
    return page
