"""The model card of the demo. The run that made the files supplies every number."""

from task import Config

CARD = """\
# A small poet, for trying minimind.cpp

A MiniMind-3 dense model of {millions:.2f} M parameters ({megabytes:.1f} MB) that writes classical Chinese poems in four
regulated forms: 五言绝句, 七言绝句, 五言律诗 and 七言律诗 (五绝, 七绝, 五律 and 七律 for short).

It only writes poems: it takes any message as a title or a first line. It knows no facts, was taught no tone patterns and
remembers nothing of a conversation. Its poems keep the form and mood of the genre better than they make sense. It is not one
of MiniMind's released models and shares no weights with them.

## Use

    ./minimind chat -p '{question}'
    ./minimind chat -p '以“秋夜”为题写一首七言律诗'
    ./minimind chat -p '续写：床前明月光'

Requests in training had a form and a title, one of them alone, or a first line to continue, in about thirty wordings
(`tools/demo/prompts.py`). The answer is the whole poem, one couplet per line. Plain text in training had no token before the
poem, so use `--raw` to continue a line: `./minimind generate --raw -p '床前明月光，'`.

## Samples

Unselected: the first sample of each seed.
{samples}
## Measured

| measure | this model | the {validation_poems} validation poems |
|---|---|---|
| loss per token of verse, requested by form and title | {plain_loss:.4f} nats | |
| this loss in bits per character, punctuation included | {bits_per_character:.3f} | |
| loss, requested as in training, also by a first line | {validation_loss:.4f} nats | |
| correct form: 4 or 8 lines of 5 or 7 characters, as requested | {in_form:.1%}, other wordings {in_form_varied:.1%} | |
| all even lines rhyme in modern Mandarin (中华新韵) | {rhyming:.1%} | {rhyming_validation:.1%} |
| poems with a broken character | {broken} of {poems} | |
| poems with at most two consecutive lines of one training poem | {copied_at_most_two:.1%} | |
| most consecutive lines of one training poem | {copied_most} | |
| lines that occur in a training poem | {lines_known:.2%} | {lines_known_validation:.2%} |

Measured by `tools/demo/export.py` on the files of this folder, on {poems} poems written by minimind with its default sampling:
temperature 0.85, top-p 0.95, top-k 50. Each of {titles} titles of validation poems was requested twice: in the plainest wording,
and in a random wording of the training.

The poets used the rhymes of their time, hence the second column of that row.

## Files

| file | contents |
|---|---|
| model.pth | float16 state dict under MiniMind-3's names, `lm_head.weight` sharing the embedding's storage |
| config.json | the shape, and what no tensor shows, under MiniMind's names |
| tokenizer.json | byte-level BPE, {vocab_size} ids, MiniMind-3's added tokens at 0 to 35; a character of verse is one token |
| tokenizer_config.json | names of the special tokens |
| chat_template.jinja | ChatML; shows only the last question, as in training |
| loss.svg | the training run |
| LICENSE | the licence of the data |

Hidden size {hidden_size}, {num_hidden_layers} layers, {num_attention_heads} query and {num_key_value_heads} key-value
heads of {head_dim}, FFN {intermediate_size}, RoPE theta {rope_theta:.0f}, RMSNorm epsilon {rms_norm_eps}.
No training sample was longer than {longest} tokens.

## Training

Regulated verse of Tang and Song from [chinese-poetry](https://github.com/chinese-poetry/chinese-poetry) (MIT; the poems
themselves are in the public domain), in simplified characters: {trained_poems} of {train_poems} poems. Poems with a
character outside the {characters} most common were omitted, so that no answer contains a part of a character.

Float32 on two CPU cores of a shared machine, {minutes:.0f} minutes, {step} steps of {batch} poems, {million_tokens:.1f} M tokens. Muon for the
matrices, AdamW for the rest; a constant rate that falls to 0 over the last {decay:.0%}. The loss counts only the
answers. `tools/demo/README.md` explains how to train it again.

![loss against tokens](loss.svg)
"""

SAMPLE = """
`-p '{question}' --seed {seed}`:

{text}
"""


def indented(text: str) -> str:
    return "\n".join("    " + line for line in text.split("\n"))


def card(config: Config, numbers: dict) -> str:
    """Returns the card for the numbers of the run, the data and the written poems: see export.py."""
    samples = "".join(SAMPLE.format(**sample | {"text": indented(sample["text"])}) for sample in numbers["samples"])
    derived = {
        "samples": samples,
        "question": numbers["samples"][0]["question"],
        "millions": numbers["parameters"] / 1e6,
        "minutes": numbers["seconds"] / 60,
        "million_tokens": numbers["tokens"] / 1e6,
    }
    return CARD.format(**vars(config) | numbers | derived)
