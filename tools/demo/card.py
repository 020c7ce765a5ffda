"""The model card of the demo; every number in it is handed in from the run that made the files."""

import math

from task import Config

CARD = """\
# A small poet, for trying minimind.cpp

A MiniMind-3 dense model of {millions:.2f} M parameters that writes classical Chinese verse in four regulated forms.
It is here so that a fresh build has something to run.

It is not one of MiniMind's released models and shares no weight with them. In a chat it writes a poem of the title it is
given and remembers nothing. It knows nothing either, and its verse keeps the shape of a poem better than its sense, rhyme
or tones.

## Use

The text begins with a form (五言绝句, 七言绝句, 五言律诗 or 七言律诗), a title in 《》 if wanted, and a newline:

    五言绝句《山居》

The poem follows, a couplet a line, then `<|im_end|>` (id 2). Nothing was trained past {longest} tokens.

## Files

| file | what |
|---|---|
| model.pth | float16 state dict under MiniMind-3's names, `lm_head.weight` sharing the embedding's storage |
| tokenizer.json | byte-level BPE, {vocab_size} ids, MiniMind-3's added tokens at 0 to 35 |
| tokenizer_config.json | names of the special tokens |
| chat_template.jinja | the last message as a title or as form and title; earlier ones are not seen |
| LICENSE | the licence of the data |

Hidden size {hidden_size}, {num_hidden_layers} layers, {num_attention_heads} query and {num_key_value_heads} key-value
heads of {head_dim}, feed-forward {intermediate_size}, RoPE theta {rope_theta:.0f}, RMSNorm epsilon {rms_norm_eps}.

## Training

Tang and Song poems from [chinese-poetry](https://github.com/chinese-poetry/chinese-poetry) (MIT; the poems themselves
are in the public domain), in simplified characters: {train_poems} poems of {train_tokens} tokens. AdamW, cosine
schedule, bfloat16 autocast, {steps} of {planned_steps} steps of {batch} poems, {tokens} tokens seen, {minutes} minutes
on one shared CPU core. To do it again: `tools/demo/README.md`.

Validation, on {validation_poems} poems kept out of the tokenizer and the training, with the float16 weights of this
folder: loss {loss:.4f} nats a token, perplexity {perplexity:.1f}.

## Samples

As they came, the first draw of each seed; temperature 0.85, top-p 0.95, the first line is the prompt.
{samples}"""

SAMPLE = """
Seed {seed}:

{poem}
"""


def indented(text: str) -> str:
    return "\n".join("    " + line for line in text.rstrip().split("\n"))


def card(config: Config, numbers: dict, samples: list[tuple[int, str]]) -> str:
    """Numbers of the run (train.py) and of the data (export.py); samples are (seed, text)."""
    shown = "".join(SAMPLE.format(seed=seed, poem=indented(poem)) for seed, poem in samples)
    derived = {"millions": numbers["parameters"] / 1e6, "perplexity": math.exp(numbers["loss"])}
    return CARD.format(samples=shown, **vars(config), **numbers, **derived)
