"""What the poet's poems are like, of which the model card tells: form, rhyme, and how much is copied.

    python tools/demo/measure_poems.py --data FOLDER --program ./minimind [--model weights/demo/model.pth]

They are written by the program itself with its own defaults (temperature 0.85, top-p 0.95, top-k 50), from titles of the
validation poems: 500 asked for in the plainest words, and as many with the words drawn from those of the training.
"""

import argparse
import json
import random
import subprocess
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from pypinyin import Style, pinyin

from poems import Form, Poem, read_poems
from prompts import FORM_AND_TITLE, form_and_title

TITLES = 500
SEED = 1
WRITERS = 2  # programs at once

# The fourteen rhymes of modern Mandarin (中华新韵), by the finals of each.
RHYMES = (
    *("a ia ua", "o e uo", "ie ve ue", "ai uai", "ei ui uei", "ao iao", "ou iu iou"),
    *("an ian uan van", "en in un vn uen", "ang iang uang", "eng ing ong iong ueng", "i er v", "-i", "u"),
)
RHYME_OF = {final: rhyme for rhyme, finals in enumerate(RHYMES) for final in finals.split()}


@dataclass(frozen=True)
class Written:
    question: str
    seed: int
    form: Form
    text: str  # as it was printed

    @property
    def in_form(self) -> bool:
        bare = self.text.replace("\n", "")
        return bool(self.form.pattern.fullmatch(bare)) and all(c in "，。" or c.isalpha() for c in bare)

    @property
    def broken(self) -> bool:
        """Whether bytes that are no character came out."""
        return "\N{REPLACEMENT CHARACTER}" in self.text

    @property
    def poem(self) -> Poem:
        return Poem(self.form, "", self.text.replace("\n", ""))


def write(program: Path, model: Path, question: str, seed: int, form: Form) -> Written:
    command = [program, "chat", "-q", "-m", model, "-t", "1", "--seed", str(seed), "-p", question]
    run = subprocess.run(command, capture_output=True, check=True)
    return Written(question, seed, form, run.stdout.decode("utf-8", errors="replace").rstrip("\n"))


def rhymes_of(character: str) -> set[int]:
    """Of all its readings."""
    finals = pinyin(character, style=Style.FINALS, heteronym=True, strict=False)[0]
    initials = pinyin(character, style=Style.INITIALS, heteronym=True, strict=False)[0]
    buzzing = any(initial in ("zh", "ch", "sh", "r", "z", "c", "s") for initial in initials)
    return {RHYME_OF["-i" if final == "i" and buzzing else final] for final in finals if final in RHYME_OF}


def rhymes(poem: Poem) -> bool:
    """Whether the last characters of all even lines share a rhyme in some reading."""
    endings = [rhymes_of(line[-1]) for line in poem.lines[1::2]]
    return bool(set.intersection(*endings))


class Library:
    """The training poems, by line."""

    def __init__(self, poems: list[Poem]):
        self.places = defaultdict(set)  # line -> (poem, number of the line)
        for index, poem in enumerate(poems):
            for number, line in enumerate(poem.lines):
                self.places[line].add((index, number))

    def copied_lines(self, poem: Poem) -> int:
        """The most consecutive lines that stand so in one training poem."""
        longest, ending_here = 0, {}
        for line in poem.lines:
            ending_here = {(p, n): ending_here.get((p, n - 1), 0) + 1 for p, n in self.places.get(line, ())}
            longest = max(longest, *ending_here.values(), 0)
        return longest

    def known_lines(self, poem: Poem) -> int:
        return sum(line in self.places for line in poem.lines)


def share(values: list[bool]) -> float:
    return sum(values) / len(values)


def measure(data: Path, program: Path, model: Path) -> dict:
    """The numbers of the card, and a few poems for it."""
    rng = random.Random(SEED)
    titled = [poem for poem in read_poems(data / "poems_val.jsonl.xz") if poem.title]
    asked = rng.sample(titled, TITLES)
    plain = [(form_and_title(poem.form, poem.title), poem.form) for poem in asked]
    varied = [(rng.choice(FORM_AND_TITLE).format(form=poem.form.name, title=poem.title), poem.form) for poem in asked]
    with ThreadPoolExecutor(WRITERS) as writers:
        jobs = [writers.submit(write, program, model, q, seed, form) for seed, (q, form) in enumerate(plain + varied, 1)]
        written = [job.result() for job in jobs]
    library = Library(read_poems(data / "poems_train.jsonl.xz"))
    formed = [w.poem for w in written if w.in_form]
    copied = [library.copied_lines(poem) for poem in formed]
    return {
        "titles": TITLES,
        "poems": len(written),
        "in_form": share([w.in_form for w in written[:TITLES]]),
        "in_form_varied": share([w.in_form for w in written[TITLES:]]),
        "rhyming": share([rhymes(poem) for poem in formed]),
        "rhyming_validation": share([rhymes(poem) for poem in titled]),
        "broken": sum(w.broken for w in written),
        "copied_at_most_two": share([lines <= 2 for lines in copied]),
        "copied_most": max(copied),
        "lines_known": sum(map(library.known_lines, formed)) / sum(len(poem.lines) for poem in formed),
        "lines_known_validation": sum(map(library.known_lines, titled)) / sum(len(poem.lines) for poem in titled),
        "not_in_form": [w.__dict__ | {"form": w.form.name} for w in written if not w.in_form],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the poems")
    parser.add_argument("--program", type=Path, default="./minimind")
    parser.add_argument("--model", type=Path, default="weights/demo/model.pth")
    args = parser.parse_args()
    print(json.dumps(measure(args.data, args.program.resolve(), args.model), ensure_ascii=False, indent=2))


if __name__ == "__main__":
    main()
