"""The model card of the demo; every number in it is handed in from the run that made the files."""

from task import Config

CARD = """\
# A small poet, for trying minimind.cpp

A MiniMind-3 dense model of {millions:.2f} M parameters ({megabytes:.1f} MB) that writes classical Chinese poems in four
regulated forms: 五言绝句, 七言绝句, 五言律诗 and 七言律诗 (五绝, 七绝, 五律 and 七律 for short).

It writes poems and answers nothing else: whatever it is told, it takes for a title or a first line. It knows no facts,
follows no tone pattern it was taught, remembers nothing of a conversation, and its poems keep the form and the mood of the
genre better than they make sense. It is not one of MiniMind's released models and shares no weight with them.

## Use

    ./minimind chat -p '{question}'
    ./minimind chat -p '以“秋夜”为题写一首七言律诗'
    ./minimind chat -p '续写：床前明月光'

What it was asked in training: a form and a title, either alone, or a first line to go on from, in some thirty wordings
(`tools/demo/prompts.py`). The answer is the whole poem, a couplet a line. Poems as plain text had no token before them:
`./minimind generate --raw -p '床前明月光，'`.

## Samples

As they came, the first draw of each seed.
{samples}
## Measured

By `tools/demo/export.py` on the files of this folder, the poems written by minimind with its default sampling (temperature
0.85, top-p 0.95, top-k 50), from {titles} titles of validation poems, each asked for in the plainest words, and again in
wordings drawn from those of the training: {poems} poems.

| what | this model | the {validation_poems} validation poems |
|---|---|---|
| loss of a token of verse, asked for by form and title | {plain_loss:.4f} nats | |
| the same in bits per character, punctuation included | {bits_per_character:.3f} | |
| loss, asked for as in training, by a first line too | {validation_loss:.4f} nats | |
| form correct: 4 or 8 lines of 5 or 7 characters, as asked | {in_form:.1%}, other wordings {in_form_varied:.1%} | |
| even lines rhyme in modern Mandarin (中华新韵), all of them | {rhyming:.1%} | {rhyming_validation:.1%} |
| poems with a broken character | {broken} of {poems} | |
| poems with at most two consecutive lines of one training poem | {copied_at_most_two:.1%} | |
| most consecutive lines of one training poem | {copied_most} | |
| lines that stand in some training poem | {lines_known:.2%} | {lines_known_validation:.2%} |

The poets rhymed by the rimes of their time, hence the second column of the rhymes.

## Files

| file | what |
|---|---|
| model.pth | float16 state dict under MiniMind-3's names, `lm_head.weight` sharing the embedding's storage |
| tokenizer.json | byte-level BPE, {vocab_size} ids, MiniMind-3's added tokens at 0 to 35; a character of verse is one token |
| tokenizer_config.json | names of the special tokens |
| chat_template.jinja | ChatML; the last question alone is seen, as in training |
| loss.svg | the training run |
| LICENSE | the licence of the data |

Hidden size {hidden_size}, {num_hidden_layers} layers, {num_attention_heads} query and {num_key_value_heads} key-value
heads of {head_dim}, feed-forward {intermediate_size}, RoPE theta {rope_theta:.0f}, RMSNorm epsilon {rms_norm_eps}.
Nothing was trained past {longest} tokens.

## Training

Regulated verse of Tang and Song from [chinese-poetry](https://github.com/chinese-poetry/chinese-poetry) (MIT; the poems
themselves are in the public domain), in simplified characters: {trained_poems} poems. Of {train_poems}, those with a
character beyond the {characters} commonest were left out, so that no part of a character is ever learned as an answer. Float32 on two CPU
cores of a shared machine, {minutes:.0f} minutes, {step} steps of {batch} poems, {million_tokens:.1f} M tokens; Muon for the
matrices, AdamW for the rest, an even rate that falls to nothing over the last {decay:.0%}. The loss counts the answers
alone. To do it again, end to end: `tools/demo/README.md`.

![loss against tokens](loss.svg)
"""

SAMPLE = """
`-p '{question}' --seed {seed}`:

{text}
"""


def indented(text: str) -> str:
    return "\n".join("    " + line for line in text.split("\n"))


def card(config: Config, numbers: dict) -> str:
    """Numbers of the run, of the data and of the poems written: see export.py."""
    samples = "".join(SAMPLE.format(**sample | {"text": indented(sample["text"])}) for sample in numbers["samples"])
    derived = {
        "samples": samples,
        "question": numbers["samples"][0]["question"],
        "millions": numbers["parameters"] / 1e6,
        "minutes": numbers["seconds"] / 60,
        "million_tokens": numbers["tokens"] / 1e6,
    }
    return CARD.format(**vars(config) | numbers | derived)
