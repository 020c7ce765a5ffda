"""Draws what files of the demo lose by their size, and how fast they are: python3 tools/demo/types_chart.py

Reads types.json of measure_types.py and llama_cpp_types.json of llama_cpp_types.py, and writes types.svg, all in this folder.
Needs only Python.
"""

import json
import math
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "bench_peers"))

from chart import COLORS, MARGIN, WIDTH, text  # noqa: E402

OURS, CALIBRATED, PEER, IMPORTANCE = "minimind", "minimind, calibrated", "llama.cpp", "llama.cpp, importance matrix"
SERIES = {OURS: "#d27f8a", CALIBRATED: "#d1495b", PEER: COLORS["llama.cpp"], IMPORTANCE: COLORS["ik_llama.cpp"]}
LARGEST = 5.0  # MB: of larger files only the sizes differ

# Sizes in pixels.
TOP, PANEL, BOTTOM = 88, 330, 52
AXIS = 52  # left of a panel, for its numbers


def points(ours: dict, peers: dict) -> list[dict]:
    """Returns {series, type, megabytes, kl, interval, speed} of every file that the chart shows."""
    rows = [(CALIBRATED if file["calibrated"] else OURS, file) for file in ours["files"]]
    rows += [(IMPORTANCE if file["importance_matrix"] else PEER, file) for file in peers["files"]]
    return [{"series": series, "type": file["type"], "megabytes": file["bytes"] / 1e6, "kl": file["mean_kl"],
             "interval": file["mean_kl_95"], "speed": file["tokens_per_second"]}
            for series, file in rows if file["bytes"] < LARGEST * 1e6 and file["mean_kl"] > 0]


def best(found: list[dict]) -> list[dict]:
    """Returns those that no file of at most their size diverges less than, in the order of sizes."""
    line: list[dict] = []
    for point in sorted(found, key=lambda point: (point["megabytes"], point["kl"])):
        if not line or point["kl"] < line[-1]["kl"]:
            line.append(point)
    return line


class Axis:
    """Maps numbers to pixels, evenly or by their logarithms."""

    def __init__(self, low: float, high: float, start: float, end: float, logarithmic: bool = False):
        self.scaled = math.log10 if logarithmic else float
        self.low, self.high, self.start, self.end = self.scaled(low), self.scaled(high), start, end

    def __call__(self, number: float) -> float:
        share = (self.scaled(number) - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 1)


def grid(x: Axis, y: Axis, columns: list[float], rows: list[float], unit: str) -> list[str]:
    lines = []
    for row in rows:
        lines.append(f'<path d="M{x.start:g} {y(row):g}H{x.end:g}" stroke="#ddd"/>')
        lines.append(text(x.start - 6, y(row) + 4, f"{row:g}", 'text-anchor="end" font-size="10"'))
    for column in columns:
        lines.append(text(x(column), TOP + PANEL + 16, f"{column:g}{unit if column == columns[-1] else ''}",
                          'text-anchor="middle" font-size="10"'))
    return lines


def marks(found: list[dict], key: str, x: Axis, y: Axis) -> list[str]:
    return [f'<circle cx="{x(point["megabytes"]):g}" cy="{y(point[key]):g}" r="3" fill="{SERIES[point["series"]]}"/>'
            for point in found]


class Labels:
    """Puts names next to marks, where they cover neither marks nor earlier names."""

    HEIGHT, LETTER = 9, 5.2

    def __init__(self, marks: list[tuple[float, float]]):
        self.taken = [(x - 3, y - 3, x + 3, y + 3) for x, y in marks]

    def place(self, x: float, y: float, words: str, color: str) -> str:
        width = self.LETTER * len(words)
        for distance in range(5, 60, 3):
            places = [(x + distance, y + 3), (x - distance - width, y + 3)]
            places += [(at, y + down) for down in (distance + 6, -distance) for at in (x + 3, x - 3 - width)]
            for left, base in places:
                box = (left, base - self.HEIGHT + 2, left + width, base + 1)
                if not any(box[0] < r and l < box[2] and box[1] < b and t < box[3] for l, t, r, b in self.taken):
                    self.taken.append(box)
                    return text(round(left, 1), round(base, 1), words, f'font-size="9" fill="{color}"')
        raise ValueError(f"no place for the name {words}")


def names(found: list[dict], x: Axis, y: Axis) -> list[str]:
    """Names every file once: one with an importance matrix is next to the one without."""
    labels = Labels([(x(point["megabytes"]), y(point["kl"])) for point in found])
    return [labels.place(x(point["megabytes"]), y(point["kl"]), point["type"].removesuffix(", calibrated"), SERIES[point["series"]])
            for point in sorted(found, key=lambda point: list(SERIES).index(point["series"])) if point["series"] != IMPORTANCE]


def series_of(found: list[dict]) -> dict[str, str]:
    return {series: color for series, color in SERIES.items() if any(point["series"] == series for point in found)}


def legend(found: list[dict]) -> list[str]:
    lines, x = [], MARGIN
    for series, color in series_of(found).items():
        lines.append(f'<circle cx="{x + 5}" cy="43" r="4" fill="{color}"/>')
        lines.append(text(x + 15, 47, series))
        x += 36 + 7 * len(series)
    return lines


def draw(ours: dict, peers: dict) -> str:
    """Returns the SVG of the two files, which must be of the same poems."""
    assert ours["poems"] == peers["poems"]
    found = points(ours, peers)
    sizes = [point["megabytes"] for point in found]
    columns = [size / 2 for size in range(math.ceil(2 * min(sizes)), math.floor(2 * max(sizes)) + 1)]
    edges = min(sizes) - 0.25, max(sizes) + 0.2
    divergences = [point["kl"] for point in found]
    left = Axis(*edges, MARGIN + AXIS, 500)
    y = Axis(min(divergences) / 1.5, max(divergences) * 1.5, TOP + PANEL, TOP, logarithmic=True)
    rows = [digit * 10.0**power for power in range(-5, 0) for digit in (1, 2, 5)]
    lines = legend(found) + [text(MARGIN, TOP - 16, "Mean KL divergence from f16, nats per token; lower is better", 'font-weight="bold"')]
    lines += grid(left, y, columns, [row for row in rows if min(divergences) / 1.5 < row < max(divergences) * 1.5], " MB")
    for series, color in series_of(found).items():
        line = best([point for point in found if point["series"] == series])
        path = "L".join(f"{left(point['megabytes']):g} {y(point['kl']):g}" for point in line)
        lines.append(f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="1.5"/>')
    lines += marks(found, "kl", left, y) + names(found, left, y)
    timed = [point for point in found if point["speed"]]
    if timed:
        fastest = max(point["speed"] for point in timed)
        step = 10 ** math.floor(math.log10(fastest))
        right, speeds = Axis(*edges, 500 + MARGIN + AXIS, WIDTH - MARGIN), Axis(0, fastest * 1.1, TOP + PANEL, TOP)
        lines.append(text(500 + MARGIN, TOP - 16, "Decoding with minimind, tokens per second", 'font-weight="bold"'))
        lines += grid(right, speeds, [column for column in columns if column == int(column)],
                      [step * k for k in range(int(fastest * 1.1 / step) + 1)], " MB")
        lines += marks(timed, "speed", right, speeds)
    height = TOP + PANEL + BOTTOM
    widest = max((point["interval"][1] / point["kl"] - 1) for point in found if point["interval"])
    conditions = (f"{ours['poems']} poems kept out of training; 95 % intervals of at most ±{100 * widest:.0f} %. Lines join the best files of "
                  "each size. minimind measured every file, with activations of 8 bits.")
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:g}" viewBox="0 0 {WIDTH} {height:g}" '
        'font-family="sans-serif" font-size="12" fill="#222">',
        f'<rect width="{WIDTH}" height="{height:g}" rx="6" fill="#fff"/>',
        text(MARGIN, 24, "What a quantised file of the demo loses, by its size", 'font-size="14" font-weight="bold"'),
        *lines,
        text(MARGIN, height - 12, conditions, 'font-size="10" fill="#555"'),
        "</svg>",
    ]) + "\n"


if __name__ == "__main__":
    found = [json.loads((HERE / name).read_text()) for name in ("types.json", "llama_cpp_types.json")]
    (HERE / "types.svg").write_text(draw(*found))
