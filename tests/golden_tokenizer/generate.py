"""Trains the small tokenizer in this folder and records its ids and texts in Hugging Face tokenizers.

    python tests/golden_tokenizer/generate.py        (pip install tokenizers==0.23.3)

Writes tokenizer.json, tokenizer_config.json, golden.jsonl {text, ids, decoded, decoded_skip_special} and
unicode_classes.txt: for each run of code points its first one, its class in the GPT-2 pattern, and whether \\w matches it.
Nothing here is from MiniMind: the training text is below.
"""

import json
import pathlib
import random

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).parent
SURROGATES = range(0xD800, 0xE000)

CORPUS = [
    "The quick brown fox jumps over the lazy dog, and the dog doesn't mind: it's asleep.",
    "A tokenizer cuts a text into words, then merges the bytes of each word into tokens.",
    "They've said that we'll measure it again; I'm sure you'd rather read the numbers: 1, 12, 123, 1234.",
    "for (int i = 0; i < 10; ++i) { total += i * i; }  // the sum of the squares",
    "    def forward(self, tokens):\n        return self.head(self.layers(tokens))\n",
    "今天的天气很好，我们一起去公园散步。今天的人很多，我们也很高兴。",
    "语言模型读一段文字，然后一个一个地写出后面的词。词写完了，句子也就完了。",
    "我们的模型很小，可是它的速度很快。小模型也可以写出好的句子。",
]

ADDED = [
    AddedToken("<|end|>", special=True),
    AddedToken("<|user|>", special=True),
    AddedToken("<|user|>:", special=False, normalized=False),
    AddedToken("<left>", lstrip=True, normalized=False),
    AddedToken("<right>", rstrip=True, normalized=False),
    AddedToken("<both>", lstrip=True, rstrip=True, normalized=True),
    AddedToken("word", single_word=True, normalized=True),
    AddedToken("模型", special=False, normalized=True),
]

PARTS = [part.content for part in ADDED] + [
    "<|us", "er|>", "words", "word_", "_word", "模", "型", "the", " the", "tokens", "'t", "'S", "'ll", "' s", "’s", "don't",
    "今天", "我们的", "，", "。", "ａ", "１２", "٣", "Ⅷ", "½", "²", "é", "e\u0301", "Ω", "я", "א", "क्", "한", "ｶﾞ", "👩‍👩‍👧", "👍🏽",
    "🇫🇷", "1️⃣", "\U0001F170", "\U00010D40", "\U0002EBF0", "\u1C89", "\U0010FFFF", "\uFFFD", "\uE000", "\0", "\x1c", "\x7f",
    " ", "  ", "    ", "\t", "\n", "\r\n", "\n\n", "\v", "\f", "\u0085", "\u00A0", "\u1680", "\u180E", "\u2003", "\u2028",
    "\u200B", "\u200D", "\u202F", "\u3000", "\uFEFF", "0", "42", "3.14", "==", "...", "#", "_", "ĠĊ",
]


def train():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=420, special_tokens=ADDED[:2], initial_alphabet=alphabet)
    tokenizer.train_from_iterator(CORPUS * 4, trainer)
    tokenizer.add_tokens(ADDED[2:])
    return tokenizer


def random_texts(count):
    rng = random.Random(420)
    return ["".join(rng.choices(PARTS, k=rng.randint(1, 9))) for _ in range(count)]


def write_golden(tokenizer):
    texts = ["", *CORPUS, *PARTS, *random_texts(200)]
    rows = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
    rng = random.Random(421)
    for _ in range(60):  # random ids, some of which have no token
        rows.append([rng.randrange(tokenizer.get_vocab_size() + 5) for _ in range(rng.randint(1, 8))])
        texts.append(None)
    with open(HERE / "golden.jsonl", "w", encoding="utf-8") as file:
        for text, ids in zip(texts, rows):
            row = {"text": text, "ids": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=False)}
            row["decoded_skip_special"] = tokenizer.decode(ids, skip_special_tokens=True)
            file.write(json.dumps(row) + "\n")


def char_class(pre_tokenizer, char):
    samples = {"letter": "a", "number": "1", "other": "!", "space": "\t"}
    joins = [name for name, sample in samples.items() if len(pre_tokenizer.pre_tokenize_str(sample + char)) == 1]
    assert len(joins) == 1, (hex(ord(char)), joins)
    return joins[0]


def write_unicode_classes():
    pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    marker = Tokenizer(models.BPE({"?": 0}, [], unk_token="?"))
    marker.add_tokens([AddedToken("<m>", single_word=True)])
    last = None
    with open(HERE / "unicode_classes.txt", "w", encoding="ascii") as file:
        for code_point in range(0x110000):
            if code_point in SURROGATES:
                continue
            is_word = marker.token_to_id("<m>") not in marker.encode(chr(code_point) + "<m>").ids
            current = f"{char_class(pre_tokenizer, chr(code_point))} {'word' if is_word else '-'}"
            if current != last:
                file.write(f"{code_point:04X} {current}\n")
            last = current


def main():
    tokenizer = train()
    tokenizer.save(str(HERE / "tokenizer.json"), pretty=False)
    config = {"bos_token": "<|user|>", "eos_token": {"content": "<|end|>", "special": True}, "pad_token": None,
              "chat_template": "{{ messages[0].content }}"}
    (HERE / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n")
    write_golden(tokenizer)
    write_unicode_classes()


if __name__ == "__main__":
    main()
