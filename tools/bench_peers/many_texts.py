"""Writes the tables of many texts, and of a busy machine, in RESULTS.md and the README: python3 tools/bench_peers/many_texts.py

Reads many_texts.json and busy.json, in this folder, and replaces what the pages have between their markers. Needs only Python.
"""

import json
from pathlib import Path

from table import OURS, best_peer, between, in_both_languages, ratio_to_best_peer, speed

HERE = Path(__file__).resolve().parent
RESULTS, PAGE, README = HERE / "many_texts.json", HERE / "RESULTS.md", HERE.parent.parent / "README.md"
BEGIN, END = "<!-- many_texts.py writes from here -->\n", "<!-- to here -->\n"
README_MARKERS = [(f"<!-- many_texts.py writes {language} from here -->\n", f"<!-- to here, many texts, {language} -->\n")
                  for language in ("English", "Chinese")]
BUSY = HERE / "busy.json"
BUSY_MARKERS = [(f"<!-- many_texts.py writes busy {language} from here -->\n", f"<!-- to here, busy, {language} -->\n")
                for language in ("English", "Chinese")]
README_ROWS = [("3", "q8_0"), ("3", "q4_0"), ("3", "f16"), ("3-moe", "q8_0")]
README_TESTS = ["decode 16 after 16", *(f"{texts} x decode 16 after 16" for texts in (8, 32))]


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
    return between(page, BEGIN, section(report), END)


def short_table(report: dict, chinese: bool) -> str:
    """Returns the README's table: tokens per second of minimind and the best peer."""
    medians = {(row["model"], row["type"], row["test"]): row["medians"] for row in report["results"]}
    heading = ["多段文本同时解码，合计 tokens/s：minimind / 最快的对手" if chinese else
               "texts decoded at once, tokens/s of all: minimind / best peer", "1 段" if chinese else "1 text", "8", "32"]
    lines = [f"| {' | '.join(heading)} |", "|---" * len(heading) + "|"]
    for model, dtype in README_ROWS:
        speeds = [medians[model, dtype, test] for test in README_TESTS]
        cells = [f"{speed(each[OURS])} / {speed(best_peer(each))}" for each in speeds]
        lines.append(f"| MiniMind-{model} {dtype} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def busy_table(report: dict, chinese: bool) -> str:
    """Returns the README's table of a busy machine: tokens per second, and the share of those of the quiet machine."""
    columns = [(row["test"].partition(" beside ")[2].partition(" ")[0] or "0", row["medians"]) for row in report["results"]
               if row["test"].startswith("decode")]
    heading = "解码单段文本，tokens/s；忙碌进程数：" if chinese else "one text decoded, tokens/s; busy processes:"
    lines = [f"| {heading} | {' | '.join(busy for busy, _ in columns)} |", "|---" * (len(columns) + 1) + "|"]
    for engine, quiet in columns[0][1].items():
        cells = [f"{speed(medians[engine])} ({medians[engine] / quiet:.2f})" for _, medians in columns[1:]]
        lines.append(f"| {engine} | {' | '.join([speed(quiet), *cells])} |")
    return "\n".join(lines) + "\n"


def updated_readme(page: str, report: dict, busy: dict) -> str:
    page = in_both_languages(page, README_MARKERS, lambda chinese: short_table(report, chinese))
    return in_both_languages(page, BUSY_MARKERS, lambda chinese: busy_table(busy, chinese))


if __name__ == "__main__":
    measured = json.loads(RESULTS.read_text())
    PAGE.write_text(updated(PAGE.read_text(), measured))
    README.write_text(updated_readme(README.read_text(), measured, json.loads(BUSY.read_text())))
