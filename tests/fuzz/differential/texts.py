"""Random texts and tokenizers: does `minimind tokenize` give the ids and texts of Hugging Face's tokenizers?"""

import json
import random
import subprocess
import sys
import tempfile

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

import common

sys.path.insert(0, str(common.ROOT / "tests/golden_tokenizer"))
import generate  # noqa: E402

BATCH = 1500
RANGES = [(0, 0x80), (0x80, 0x250), (0x300, 0x370), (0x370, 0x600), (0x900, 0xE80), (0x1100, 0x1200), (0x2000, 0x2C00),
          (0x3000, 0x3100), (0x4E00, 0x9FFF), (0xAC00, 0xD7A4), (0xE000, 0xE100), (0xFE00, 0x10000), (0x1F000, 0x1FB00), (0, 0x110000)]


def character():
    first, last = random.choice(RANGES)
    code = random.randrange(first, last)
    return "x" if 0xD800 <= code < 0xE000 else chr(code)


def text(parts):
    pieces = []
    for _ in range(random.randrange(12)):
        kind = random.randrange(4)
        if kind < 2:
            pieces.append(random.choice(parts))
        elif kind == 2:
            pieces.append("".join(character() for _ in range(random.randrange(6))))
        else:
            pieces.append(random.choice([" ", "\n", "1", "'s", "ab", "的"]) * random.randrange(1, 5))
    return "".join(pieces)


def random_added():
    words = ["<a>", "<|b|>", "<|b|>c", "ab", "de f", " x", "模", "'s", "12", "</a>", "\n", "é"]
    return [AddedToken(word, special=random.random() < 0.5, single_word=random.random() < 0.3, lstrip=random.random() < 0.3,
                       rstrip=random.random() < 0.3, normalized=random.random() < 0.5)
            for word in random.sample(words, random.randrange(1, 7))]


def random_tokenizer(path):
    """Trains one on a random text, with random added tokens."""
    tokenizer = Tokenizer(models.BPE(ignore_merges=random.random() < 0.3))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=random.random() < 0.3)
    tokenizer.decoder = decoders.ByteLevel()
    corpus = [text(generate.PARTS) + random.choice(generate.CORPUS) for _ in range(40)]
    trainer = trainers.BpeTrainer(vocab_size=random.randrange(260, 600), show_progress=False,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.train_from_iterator(corpus, trainer)
    tokenizer.add_tokens(random_added())
    tokenizer.save(path)
    return tokenizer


def encoded(tokenizer, given, special):
    """None if tokenizers itself fails: its Rust code panics on some added tokens with lstrip, rstrip and single_word."""
    try:
        return tokenizer.encode(given, add_special_tokens=special).ids
    except BaseException as panic:
        if "Panic" not in type(panic).__name__:
            raise
        return None


def run(comparison, path, arguments, lines):
    process = subprocess.run([comparison.program, "tokenize", "--tokenizer", path, "--jsonl", *arguments],
                             input="\n".join(map(json.dumps, lines)) + "\n", capture_output=True, text=True)
    results = [json.loads(line) for line in process.stdout.split("\n") if line]
    if len(results) != len(lines):
        comparison.disagree("refused", message=process.stderr.strip(), status=process.returncode, input=lines[len(results)],
                            tokenizer=open(path, encoding="utf-8").read() if len(results) == 0 else path)
        return None
    return results


def compare(comparison, tokenizer, path):
    parts = generate.PARTS + [token.content for token in tokenizer.get_added_tokens_decoder().values()]
    texts = [text(parts) for _ in range(BATCH)]
    for special in (False, True):
        got = run(comparison, path, ["--add-special"] if special else [], texts)
        expected = [encoded(tokenizer, given, special) for given in texts]
        for given, ids, ours in zip(texts, expected, got or ()):
            comparison.count("texts" if ids is not None else "texts on which tokenizers panics")
            if ids is not None and ids != ours:
                comparison.disagree("other ids", text=given, expected=ids, got=ours, special=special, tokenizer=path)
    rows = [ids for ids in expected if ids is not None][:BATCH // 2] + [[random.randrange(tokenizer.get_vocab_size() + 3) for _ in range(random.randrange(1, 9))]
                                    for _ in range(BATCH // 2)]
    for skip in (False, True):
        got = run(comparison, path, ["--decode", *(["--skip-special"] if skip else [])], rows)
        for ids, ours in zip(rows, got or ()):
            comparison.count("rows of ids")
            decoded = tokenizer.decode(ids, skip_special_tokens=skip)
            if decoded != ours:
                comparison.disagree("another text", ids=ids, expected=decoded, got=ours, skip=skip, tokenizer=path)


def main():
    comparison = common.Comparison("texts", __doc__)
    fixed = [common.ROOT / "weights/demo/tokenizer.json", common.ROOT / "tests/golden_tokenizer/tokenizer.json"]
    while comparison.has_time():
        if random.random() < 0.3:
            path = str(random.choice(fixed))
            compare(comparison, Tokenizer.from_file(path), path)
            continue
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            tokenizer = random_tokenizer(file.name)
            faults = comparison.faults
            compare(comparison, tokenizer, file.name)
            comparison.count("tokenizers")
            if comparison.faults > faults:
                comparison.disagree("its tokenizer", tokenizer=tokenizer.to_str())
    comparison.finish()


if __name__ == "__main__":
    main()
