"""The poems: regulated verse of four forms, read from lines of {form, title, author, text}."""

import json
import lzma
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

LONGEST_TITLE = 16  # in characters; a longer title is a preface, and its poem is trained on as untitled
CHARACTERS = 5600  # the most common, one token each; see readable()
TITLE_QUOTES = re.compile("[《》“”「」『』\\s]")


@dataclass(frozen=True)
class Form:
    name: str  # 五言绝句
    short_name: str  # 五绝, as the data spells it
    lines: int
    characters: int  # per line

    @property
    def pattern(self) -> re.Pattern:
        line = f"[^，。]{{{self.characters}}}"
        return re.compile(f"(?:{line}，{line}。){{{self.lines // 2}}}")


FORMS = {
    form.short_name: form
    for form in (
        Form("五言绝句", "五绝", 4, 5),
        Form("七言绝句", "七绝", 4, 7),
        Form("五言律诗", "五律", 8, 5),
        Form("七言律诗", "七律", 8, 7),
    )
}


@dataclass(frozen=True)
class Poem:
    form: Form
    title: str  # empty if missing or a preface
    text: str  # without spaces; lines end in ， and 。 in turns

    @property
    def lines(self) -> list[str]:
        """The lines without punctuation."""
        return re.split("[，。]", self.text)[:-1]

    @property
    def verse(self) -> str:
        """The text with one couplet per line."""
        return self.text.replace("。", "。\n").rstrip("\n")


def read_poems(path: Path) -> list[Poem]:
    """Returns the poems whose text has their stated form: all except a few hundred."""
    poems = []
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            poem = json.loads(line)
            form, title = FORMS[poem["form"]], TITLE_QUOTES.sub("", poem["title"])
            if form.pattern.fullmatch(poem["text"]):
                poems.append(Poem(form, title if len(title) <= LONGEST_TITLE else "", poem["text"]))
    return poems


def common_characters(poems: list[Poem]) -> set[str]:
    counts = Counter()
    for poem in poems:
        counts.update(poem.text)
    return {character for character, _ in counts.most_common(CHARACTERS)}


def readable(poems: list[Poem], characters: set[str]) -> list[Poem]:
    """Returns the poems that contain only these characters. A rarer character would be several tokens; a poet that never
    learned them as an answer hardly ever writes a part of a character."""
    return [poem for poem in poems if characters.issuperset(poem.text)]
