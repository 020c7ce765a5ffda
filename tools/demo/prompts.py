"""The wordings of requests for a poem. A sample is (question, answer) and depends only on the random generator."""

import json
import random

from poems import Form, Poem

IM_START, IM_END = "<|im_start|>", "<|im_end|>"

FORM_AND_TITLE = (
    "写一首{form}，题目：{title}",
    "写一首{form}，题目是{title}。",
    "以“{title}”为题写一首{form}",
    "请以“{title}”为题，写一首{form}。",
    "写一首题为“{title}”的{form}",
    "写一首题为《{title}》的{form}。",
    "请写一首{form}，题为《{title}》。",
    "帮我写一首关于{title}的{form}",
    "作一首{form}：{title}",
    "{form}《{title}》",
    "{form}：{title}",
)
TITLE = (
    "写一首诗，题目：{title}",
    "以“{title}”为题写一首诗",
    "请写一首题为《{title}》的诗。",
    "写一首关于{title}的诗",
    "《{title}》",
    "{title}",
)
FORM = ("写一首{form}", "请写一首{form}。", "作一首{form}", "{form}")
FORM_AND_LINE = (
    "续写这首{form}：{line}",
    "以“{line}”开头写一首{form}",
    "用“{line}”作第一句，写一首{form}。",
    "续写成一首{form}：{line}，",
)
LINE = ("续写：{line}", "续写：{line}，", "续写“{line}”", "请续写：{line}，", "接着写：{line}", "以“{line}”开头写一首诗")
SHORT_NAME = 0.3  # share of requests with the short name of the form

# Kinds of requests and their weights. A poem without a title uses the kinds without one.
REQUESTS = ((FORM_AND_TITLE, 60), (TITLE, 14), (FORM, 4), (FORM_AND_LINE, 11), (LINE, 11))
NEED_TITLE = (FORM_AND_TITLE, TITLE)


def form_and_title(form: Form, title: str) -> str:
    return FORM_AND_TITLE[0].format(form=form.name, title=title)


def plain_question(poem: Poem) -> str:
    """Returns the plainest request for a poem like this one."""
    return form_and_title(poem.form, poem.title) if poem.title else FORM[0].format(form=poem.form.name)


def question(poem: Poem, rng: random.Random) -> str:
    kinds = [(wordings, weight) for wordings, weight in REQUESTS if poem.title or wordings not in NEED_TITLE]
    wordings = rng.choices([kind for kind, _ in kinds], [weight for _, weight in kinds])[0]
    form = poem.form.short_name if rng.random() < SHORT_NAME else poem.form.name
    return rng.choice(wordings).format(form=form, title=poem.title, line=poem.lines[0])


def sample(poem: Poem, rng: random.Random) -> tuple[str, str]:
    """Returns a question and its answer, which is always the whole poem, the given line included."""
    return question(poem, rng), poem.verse


def chat_text(question: str) -> str:
    """Returns the prompt that chat_template.jinja makes of a question."""
    return f"{IM_START}user\n{question}{IM_END}\n{IM_START}assistant\n"


def scored_line(question: str, poem: Poem) -> str:
    """Returns the line of `minimind perplexity --jsonl` that scores this poem as the answer."""
    return json.dumps({"prompt": chat_text(question), "text": poem.verse + IM_END}) + "\n"


def heading(poem: Poem) -> str:
    return poem.form.name + (f"《{poem.title}》" if poem.title else "") + "\n"


def plain_sample(poem: Poem, rng: random.Random) -> tuple[str, str]:
    """Returns a sample of plain text: (a heading or nothing, the poem)."""
    return (heading(poem) if rng.random() < 0.5 else ""), poem.verse
