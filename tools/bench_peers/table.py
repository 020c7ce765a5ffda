"""What was measured, as a Markdown table. Needs only Python."""

import statistics
from collections import defaultdict
from dataclasses import dataclass, field

OURS = "minimind"


@dataclass(frozen=True)
class Row:
    """What the engines are compared in."""

    model: str
    dtype: str
    test: str


@dataclass
class Measurements:
    """Tokens per second, all samples of each engine in each row, rows in the order in which they first came."""

    samples: dict[Row, dict[str, list[float]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))

    def add(self, model: str, dtype: str, engine: str, results: list[dict]) -> None:
        """`results` as `minimind bench --json` gives them."""
        for result in results:
            row = Row(model, dtype, name_of(result))
            self.samples[row][engine] += result["tokens_per_second"]["samples"]


def name_of(result: dict) -> str:
    depth = f" after {result['depth']:,}" if result["depth"] else ""
    return f"{result['test']} {result['tokens']:,}{depth}"


def faster(first: list[dict], *others: list[dict]) -> list[dict]:
    """Of several ways to do the same tests, for each test what the fastest gave."""
    return [max(same, key=lambda result: statistics.median(result["tokens_per_second"]["samples"]))
            for same in zip(first, *others, strict=True)]


def ratio_to_best_peer(medians: dict[str, float]) -> float | None:
    """Of ours; None without a peer or without ours."""
    peers = [median for engine, median in medians.items() if engine != OURS]
    return medians[OURS] / max(peers) if peers and OURS in medians else None


def speed(median: float | None) -> str:
    """Three digits at least, and no more than the noise leaves."""
    if median is None:
        return ""
    return f"{median:,.0f}" if median >= 100 else f"{median:.3g}"


def markdown(measurements: Measurements, engines: list[str]) -> str:
    lines = [
        f"| model, type | test | {' | '.join(engines)} | {OURS} / best peer |",
        f"|---|---|{'---|' * len(engines)}---|",
    ]
    for row, samples in measurements.samples.items():
        medians = {engine: statistics.median(numbers) for engine, numbers in samples.items() if numbers}
        ratio = ratio_to_best_peer(medians)
        cells = [speed(medians.get(engine)) for engine in engines]
        cells += ["" if ratio is None else f"{ratio:.2f}"]
        lines.append(f"| {row.model} {row.dtype} | {row.test} | {' | '.join(cells)} |")
    return "\n".join(lines)
