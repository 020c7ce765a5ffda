"""The poems: regulated verse of four forms, from {form, title, author, text} a line."""

import json
import lzma
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

LONGEST_TITLE = 16  # characters; a longer one is a preface, and the poem trains as untitled
CHARACTERS = 5600  # the commonest, which become one token each; see readable()
TITLE_QUOTES = re.compile("[《》“”「」『』\\s]")


@dataclass(frozen=True)
class Form:
    name: str  # 五言绝句
    short_name: str  # 五绝, as the data spells it
    lines: int
    characters: int  # a line

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
    title: str  # empty: none, or a preface
    text: str  # without spaces: lines end in ， and 。 by turns

    @property
    def lines(self) -> list[str]:
        """Without punctuation."""
        return re.split("[，。]", self.text)[:-1]

    @property
    def verse(self) -> str:
        """As it is written out: a couplet a line."""
        return self.text.replace("。", "。\n").rstrip("\n")


def read_poems(path: Path) -> list[Poem]:
    """Those whose text is in the form they are filed under: all but a few hundred."""
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
    """Poems of these characters alone. A rarer one would be several tokens, and a poet that never saw those written
    hardly ever begins one that it cannot finish."""
    return [poem for poem in poems if characters.issuperset(poem.text)]
