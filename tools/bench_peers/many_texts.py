"""Writes RESULTS.md's table of many texts: python3 tools/bench_peers/many_texts.py

Reads many_texts.json and replaces what RESULTS.md, both in this folder, has between the two markers. Needs only Python.
"""

import json
from pathlib import Path

from table import OURS, ratio_to_best_peer, speed

HERE = Path(__file__).resolve().parent
RESULTS, PAGE = HERE / "many_texts.json", HERE / "RESULTS.md"
BEGIN, END = "<!-- many_texts.py writes from here -->\n", "<!-- to here -->\n"


def texts_of(test: str) -> tuple[int, str]:
    """Splits the name of a test into the number of texts and what is done with each."""
    texts, _, each = test.rpartition(" x ")
    return int(texts or 1), each


def table(report: dict) -> str:
    """Returns a row for each engine and, in bold, for the ratio to the best peer; a column for each number of texts."""
    groups: dict[tuple[str, str], dict[int, dict[str, float]]] = {}
    for row in report["results"]:
        texts, each = texts_of(row["test"])
        groups.setdefault((f"{row['model']} {row['type']}", each), {})[texts] = row["medians"]
    columns = sorted({texts for medians in groups.values() for texts in medians})
    lines = [
        f"| model, type | each text | texts: | {' | '.join(map(str, columns))} |",
        f"|---|---|---|{'---|' * len(columns)}",
    ]
    models = list(dict.fromkeys(model for model, _ in groups))
    for (model, each), medians in sorted(groups.items(), key=lambda group: models.index(group[0][0])):
        for engine in [OURS, *report["versions"]]:
            cells = [speed(medians.get(texts, {}).get(engine)) for texts in columns]
            lines.append(f"| {model} | {each} | {engine} | {' | '.join(cells)} |")
        ratios = [ratio_to_best_peer(medians.get(texts, {})) for texts in columns]
        cells = ["" if ratio is None else f"**{ratio:.2f}**" for ratio in ratios]
        lines.append(f"| {model} | {each} | **{OURS} / best peer** | {' | '.join(cells)} |")
    return "\n".join(lines)


def section(report: dict) -> str:
    versions = ", ".join(f"{engine} {version}" for engine, version in report["versions"].items())
    return "\n".join([
        table(report),
        "",
        f"{report['machine']}, {report['cores']} cores, {report['threads']} threads, {report['date']}; minimind's "
        f"{report['kernels']} kernels.",
        f"Medians of {report['samples']} samples in {report['rounds']} rounds, engines in turns. Python packages: {versions}.",
        "",
    ])


def updated(page: str, report: dict) -> str:
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + section(report) + END + after


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text(), json.loads(RESULTS.read_text())))
