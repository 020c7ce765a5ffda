"""Measures the poet for its card: its loss on poems, and the form, rhymes and copied lines of its own poems.

    python tools/demo/measure_poems.py --data FOLDER --program ./minimind [--model weights/demo/model.pth]

The program writes its poems with its default sampling: temperature 0.85, top-p 0.95, top-k 50. It gets 500 titles of
validation poems, once in the plainest wording and once in a random wording of the training.
"""

import argparse
import json
import math
import random
import subprocess
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from pypinyin import Style, pinyin

from poems import FORMS, Form, Poem, read_poems
from prompts import FORM_AND_TITLE, form_and_title, plain_question, question, scored_line
from task import SEED

TITLES = 500
WRITERS = 2  # parallel processes

SAMPLES = (
    (form_and_title(FORMS["五绝"], "山居"), 1, FORMS["五绝"]),
    ("以“秋夜”为题写一首七言律诗", 2, FORMS["七律"]),
    ("续写：床前明月光", 3, FORMS["五绝"]),
)

# The fourteen rhymes of modern Mandarin (中华新韵), each with its finals.
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
    text: str  # as printed

    @property
    def in_form(self) -> bool:
        bare = self.text.replace("\n", "")
        return bool(self.form.pattern.fullmatch(bare)) and all(c in "，。" or c.isalpha() for c in bare)

    @property
    def broken(self) -> bool:
        """Whether the output contains invalid UTF-8."""
        return "\N{REPLACEMENT CHARACTER}" in self.text

    @property
    def poem(self) -> Poem:
        return Poem(self.form, "", self.text.replace("\n", ""))


def write(program: Path, model: Path, question: str, seed: int, form: Form) -> Written:
    command = [program, "chat", "-q", "-m", model, "-t", "1", "--seed", str(seed), "-p", question]
    run = subprocess.run(command, capture_output=True, check=True)
    return Written(question, seed, form, run.stdout.decode("utf-8", errors="replace").rstrip("\n"))


def rhymes_of(character: str) -> set[int]:
    """Returns the rhymes of all readings of a character."""
    finals = pinyin(character, style=Style.FINALS, heteronym=True, strict=False)[0]
    initials = pinyin(character, style=Style.INITIALS, heteronym=True, strict=False)[0]
    buzzing = any(initial in ("zh", "ch", "sh", "r", "z", "c", "s") for initial in initials)
    return {RHYME_OF["-i" if final == "i" and buzzing else final] for final in finals if final in RHYME_OF}


def rhymes(poem: Poem) -> bool:
    """Whether the last characters of all even lines share a rhyme, if any reading may be chosen."""
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
        """Returns the largest number of consecutive lines that occur in one training poem."""
        longest, ending_here = 0, {}
        for line in poem.lines:
            ending_here = {(p, n): ending_here.get((p, n - 1), 0) + 1 for p, n in self.places.get(line, ())}
            longest = max(longest, *ending_here.values(), 0)
        return longest


def share(values: list[bool]) -> float:
    return sum(values) / len(values)


def nats_of_answers(program: Path, model: Path, poems: list[Poem], questions: list[str]) -> tuple[float, int]:
    """Returns nats per token and the number of tokens."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".jsonl") as lines:
        lines.writelines(map(scored_line, questions, poems))
        lines.flush()
        command = [program, "perplexity", "-q", "--json", "-m", model, "--jsonl", "-f", lines.name]
        scores = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return scores["nats_per_token"], scores["tokens"]


def losses(program: Path, model: Path, poems: list[Poem]) -> dict:
    rng = random.Random(SEED)
    as_trained, _ = nats_of_answers(program, model, poems, [question(poem, rng) for poem in poems])
    plainly, tokens = nats_of_answers(program, model, poems, [plain_question(poem) for poem in poems])
    return {
        "validation_poems": len(poems),
        "validation_loss": as_trained,
        "plain_loss": plainly,
        "bits_per_character": plainly * tokens / math.log(2) / sum(len(poem.text) for poem in poems),
    }


def write_all(program: Path, model: Path, requested: list[Poem]) -> tuple[list[Written], list[Written]]:
    """Returns the poems requested in the plainest wording, and those requested in random wordings."""
    rng = random.Random(SEED)
    plain = [(form_and_title(poem.form, poem.title), poem.form) for poem in requested]
    varied = [(rng.choice(FORM_AND_TITLE).format(form=poem.form.name, title=poem.title), poem.form) for poem in requested]
    with ThreadPoolExecutor(WRITERS) as writers:
        jobs = [writers.submit(write, program, model, q, seed, form) for seed, (q, form) in enumerate(plain + varied, 1)]
        written = [job.result() for job in jobs]
    return written[: len(requested)], written[len(requested) :]


def measure(train: list[Poem], validation: list[Poem], program: Path, model: Path) -> dict:
    """Returns the numbers and sample poems of the card."""
    titled = [poem for poem in validation if poem.title]
    plain, varied = write_all(program, model, random.Random(SEED).sample(titled, TITLES))
    written = plain + varied
    library = Library(train)
    formed = [w.poem for w in written if w.in_form]
    copied = [library.copied_lines(poem) for poem in formed]
    samples = [write(program, model, question, seed, form) for question, seed, form in SAMPLES]
    return losses(program, model, validation) | {
        "titles": TITLES,
        "poems": len(written),
        "in_form": share([w.in_form for w in plain]),
        "in_form_varied": share([w.in_form for w in varied]),
        "rhyming": share([rhymes(poem) for poem in formed]),
        "rhyming_validation": share([rhymes(poem) for poem in validation]),
        "broken": sum(w.broken for w in written),
        "copied_at_most_two": share([lines <= 2 for lines in copied]),
        "copied_most": max(copied),
        "lines_known": share([line in library.places for poem in formed for line in poem.lines]),
        "lines_known_validation": share([line in library.places for poem in validation for line in poem.lines]),
        "samples": [{"question": w.question, "seed": w.seed, "text": w.text} for w in samples],
        "not_in_form": [{"question": w.question, "seed": w.seed, "text": w.text} for w in written if not w.in_form],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the poems")
    parser.add_argument("--program", type=Path, default="./minimind")
    parser.add_argument("--model", type=Path, default="weights/demo/model.pth")
    args = parser.parse_args()
    train, validation = (read_poems(args.data / f"poems_{part}.jsonl.xz") for part in ("train", "val"))
    numbers = measure(train, validation, args.program.resolve(), args.model)
    print(json.dumps(numbers, ensure_ascii=False, indent=2))


if __name__ == "__main__":
    main()
