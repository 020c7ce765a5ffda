"""Draws README's chart of speed: python3 tools/bench_peers/chart.py

Reads results.json and writes speed.svg, both in this folder. Needs only Python.
"""

import json
from pathlib import Path
from xml.sax.saxutils import escape

from table import OURS, speed

HERE = Path(__file__).resolve().parent
RESULTS, CHART = HERE / "results.json", HERE / "speed.svg"
MODEL = "3"
PANELS = {"prompt 512": "Prompt of 512 tokens", "decode 128": "Decoding 128 tokens"}  # test -> title
COLORS = {OURS: "#d1495b", "llama.cpp": "#30638e", "ik_llama.cpp": "#7aa6c2", "PyTorch": "#b8b8b8"}

# Sizes in pixels.
WIDTH, MARGIN = 800, 16
HEADER, TITLE, FOOTER = 60, 26, 46
BAR, GROUP_GAP = 12, 10
LABEL, VALUE = 46, 46  # columns for the name of a type and for the number after the longest bar


def text(x: float, y: float, words: str, attributes: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" {attributes}>{escape(words)}</text>'


def legend() -> list[str]:
    lines, x = [], MARGIN
    for engine, color in COLORS.items():
        lines.append(f'<rect x="{x}" y="38" width="10" height="10" fill="{color}"/>')
        lines.append(text(x + 15, 47, engine))
        x += 36 + 7 * len(engine)
    return lines


def panel(left: float, width: float, title: str, rows: list[dict]) -> tuple[list[str], float]:
    """Returns the elements of a panel, whose bars share a scale, and the y where the panel ends."""
    longest = max(max(row["medians"].values()) for row in rows)
    lines = [text(left, HEADER + 16, title, 'font-weight="bold"')]
    y = HEADER + TITLE
    for row in rows:
        engines = [engine for engine in COLORS if engine in row["medians"]]
        middle = y + BAR * len(engines) / 2 + 4
        lines.append(text(left + LABEL - 6, middle, row["type"], 'text-anchor="end"'))
        for engine in engines:
            median = row["medians"][engine]
            length = (width - LABEL - VALUE) * median / longest
            lines.append(f'<rect x="{left + LABEL:g}" y="{y + 1:g}" width="{length:.1f}" height="{BAR - 2}" '
                         f'fill="{COLORS[engine]}"/>')
            weight = 'font-size="10"' + (' font-weight="bold"' if engine == OURS else "")
            lines.append(text(round(left + LABEL + length + 4, 1), y + BAR - 2.5, speed(median), weight))
            y += BAR
        y += GROUP_GAP
    return lines, y


def draw(results: dict) -> str:
    """Returns the SVG of the results of `bench_peers.py --json`."""
    rows = [row for row in results["results"] if row["model"] == MODEL]
    width = (WIDTH - 3 * MARGIN) / 2
    lines, bottom = legend(), 0.0
    for index, (test, title) in enumerate(PANELS.items()):
        left = MARGIN + index * (width + MARGIN)
        drawn, end = panel(left, width, title, [row for row in rows if row["test"] == test])
        lines, bottom = lines + drawn, max(bottom, end)
    height = bottom + FOOTER
    versions = ", ".join(f"{engine} {version}" for engine, version in results["versions"].items())
    conditions = [
        f"{results['machine']}, {results['threads']} threads, {results['kernels']} kernels, {results['date']}; "
        f"medians of {results['samples']} samples, engines in turns; random weights.",
        f"Versions of the Python packages: {versions}.",
    ]
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:g}" viewBox="0 0 {WIDTH} {height:g}" '
        'font-family="sans-serif" font-size="12" fill="#222">',
        f'<rect width="{WIDTH}" height="{height:g}" rx="6" fill="#fff"/>',
        text(MARGIN, 24, "MiniMind-3 (64 M parameters), tokens per second by type of the weights; longer is better",
             'font-size="14" font-weight="bold"'),
        *lines,
        *(text(MARGIN, bottom + 16 + 15 * i, line, 'font-size="10" fill="#555"') for i, line in enumerate(conditions)),
        "</svg>",
    ]) + "\n"


if __name__ == "__main__":
    CHART.write_text(draw(json.loads(RESULTS.read_text())))
