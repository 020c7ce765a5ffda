"""Draws README's picture of a terminal: python3 tools/demo/terminal.py [--program ./minimind] [--out FILE]

Runs the commands of SESSION in the project's folder and writes what they print as an SVG. Needs only Python.
"""

import argparse
import re
import shlex
import subprocess
from pathlib import Path
from xml.sax.saxutils import escape

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SESSION = (
    "./minimind chat -q --seed 1 -p '写一首七言绝句，题目：江上'",
    "./minimind chat -q --seed 3 -p '续写：床前明月光'",
    "./minimind inspect weights/demo/model.pth | head -n 9",
)
COLUMN, ROW, MARGIN, TOP = 8, 20, 20, 40  # pixels
COLUMNS = 97
RUN = re.compile("[^\u2e80-\uffff ]+(?: [^\u2e80-\uffff ]+)*|[\u2e80-\uffff]+")  # Latin words, or Chinese characters
CHINESE = ' font-size="16"'
PROMPT_COLOR, COMMAND_COLOR, OUTPUT_COLOR = "#7ee787", "#ffffff", "#c9d1d9"


def run(command: str, program: Path) -> list[str]:
    command = command.replace("./minimind", shlex.quote(str(program)))
    done = subprocess.run(command, shell=True, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.splitlines()


def words(column: int, y: int, line: str, color: str) -> list[str]:
    """Returns text elements, each exactly as wide as its columns in any font. A Chinese character takes two columns."""
    lines = []
    end = 0
    for match in RUN.finditer(line):
        column += match.start() - end
        end = match.end()
        wide = match[0][0] >= "\u2e80"
        count = len(match[0]) * (2 if wide else 1)
        lines.append(f'<text x="{MARGIN + column * COLUMN}" y="{y}" fill="{color}" textLength="{count * COLUMN}"'
                     f'{CHINESE if wide else ""}>{escape(match[0])}</text>')
        column += count
    return lines


def draw(session: list[tuple[str, list[str]]]) -> str:
    """Returns the SVG of commands and the lines that they printed."""
    lines, y = [], TOP + ROW
    for command, output in session:
        lines += words(0, y, "$", PROMPT_COLOR) + words(2, y, command, COMMAND_COLOR)
        for line in output:
            y += ROW
            lines += words(0, y, line, OUTPUT_COLOR)
        y += ROW * 3 // 2
    width, height = COLUMNS * COLUMN + 2 * MARGIN, y - ROW // 2
    buttons = (f'<circle cx="{MARGIN + 20 * i}" cy="20" r="6" fill="{color}"/>'
               for i, color in enumerate(("#ff5f56", "#ffbd2e", "#27c93f")))
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="Menlo, Consolas, DejaVu Sans Mono, Noto Sans Mono CJK SC, monospace" font-size="13.3">',
        f'<rect width="{width}" height="{height}" rx="8" fill="#161b22"/>',
        *buttons,
        *lines,
        "</svg>",
    ]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, default=ROOT / "minimind")
    parser.add_argument("--out", type=Path, default=HERE / "terminal.svg")
    options = parser.parse_args()
    session = [(command, run(command, options.program.resolve())) for command in SESSION]
    options.out.write_text(draw(session), encoding="utf-8")


if __name__ == "__main__":
    main()
