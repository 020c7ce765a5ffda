"""The poems as training text: `五言绝句《山居》`, one couplet a line, `<|im_end|>`."""

import json
import lzma
from pathlib import Path

FORMS = {"五绝": "五言绝句", "七绝": "七言绝句", "五律": "五言律诗", "七律": "七言律诗"}
LONGEST_TITLE = 16  # characters; a longer one is a preface, and the poem trains as untitled


def poem_text(poem: dict) -> str:
    title = poem["title"] if 0 < len(poem["title"]) <= LONGEST_TITLE else ""
    heading = FORMS[poem["form"]] + (f"《{title}》" if title else "")
    return heading + "\n" + poem["text"].replace("。", "。\n")


def load_poems(path: Path) -> list[str]:
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        return [poem_text(json.loads(line)) for line in lines]
