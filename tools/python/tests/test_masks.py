"""Tests of the masks, by themselves and in generate() of transformers. Run: make test-python, make test-examples."""

from __future__ import annotations

import copy
import importlib.util
import json
import pathlib
import unittest

import numpy as np

from minimind_cpp.masks import Grammar, LogitsProcessor, Matcher, Vocabulary

ROOT = pathlib.Path(__file__).resolve().parents[3]
TOKENIZER = ROOT / "weights" / "demo" / "tokenizer.json"
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name"]}
MISSING = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]


class File:
    """As a tokenizer of tokenizers."""

    @staticmethod
    def to_str() -> str:
        return TOKENIZER.read_text()


def vocabulary() -> Vocabulary:
    return Vocabulary.of(File, [2])


class Masks(unittest.TestCase):
    def test_every_text_of_the_masks_ends_in_time_and_conforms(self):
        tokens, random = vocabulary(), np.random.default_rng(1)
        texts = _texts()
        grammar = Grammar(json_schema=SCHEMA, closed=True)
        for left in (6, 12, 40):
            matcher, text = Matcher(grammar, tokens), b""
            least = matcher.tokens_to_end
            for room in range(max(left, least), 0, -1):
                id = int(random.choice(np.flatnonzero(matcher.mask(room))))
                self.assertEqual(matcher.accept(id), 1)
                if id == 2:
                    break
                text += texts[id]
            self.assertTrue(matcher.may_end)
            self.assertIsInstance(json.loads(text)["name"], str)

    def test_tokens_are_removed(self):
        matcher = Matcher(Grammar(choice=["abc", "abd"]), vocabulary())
        ids = [_texts().index(bytes([byte])) for byte in b"abc"]
        before = matcher.mask()
        self.assertEqual(matcher.accept([*ids, 2]), 4)
        matcher.rollback(2)
        self.assertEqual(matcher.tokens_to_end, 1)
        matcher.rollback(2)
        np.testing.assert_array_equal(matcher.mask(), before)

    def test_bits_are_the_mask(self):
        matcher = Matcher(Grammar(regex="[a-z]+"), vocabulary())
        mask, bits = matcher.mask(), matcher.bits()
        self.assertEqual([bool(bits[id // 32] >> np.uint32(id % 32) & np.uint32(1)) for id in range(6400)], mask.tolist())

    def test_what_is_wrong_is_named(self):
        with self.assertRaisesRegex(ValueError, "#/type: is 'text', expected object"):
            Grammar(json_schema={"type": "text"})
        with self.assertRaisesRegex(ValueError, "no constraint"):
            Grammar()
        with self.assertRaisesRegex(TypeError, r"tokens\[0\] is of type str"):
            Vocabulary(["a"], [0])
        with self.assertRaisesRegex(ValueError, "end_tokens has 3"):
            Vocabulary([b"a"], [3])
        with self.assertRaisesRegex(ValueError, "ids has -1, expected ids from 0 to 6399"):
            Matcher(Grammar(regex="a"), vocabulary()).accept(-1)
        with self.assertRaisesRegex(ValueError, "at most 0"):
            Matcher(Grammar(regex="a"), vocabulary()).rollback(1)
        with self.assertRaisesRegex(ValueError, "max_tokens is -2, expected 0 to "):
            Matcher(Grammar(regex="a"), vocabulary()).mask(-2)
        with self.assertRaisesRegex(TypeError, "a Matcher cannot be pickled or copied"):
            copy.copy(Matcher(Grammar(regex="a"), vocabulary()))


@unittest.skipIf(MISSING, f"not installed: {', '.join(MISSING)}; run make test-examples")
class Transformers(unittest.TestCase):
    def test_generate_writes_texts_of_the_schema(self):
        import torch
        from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

        torch.manual_seed(0)
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(TOKENIZER), eos_token="<|im_end|>", pad_token="<|endoftext|>")
        model = Qwen3ForCausalLM(
            Qwen3Config(
                vocab_size=6464, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1, head_dim=16,
                intermediate_size=32, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
            )
        )  # fmt: skip
        inputs = tokenizer(["a person", "b"], return_tensors="pt", padding=True, padding_side="left", return_token_type_ids=False)
        processor = LogitsProcessor(Grammar(json_schema=SCHEMA, closed=True), Vocabulary.of(tokenizer), 40)
        written = model.generate(**inputs, max_new_tokens=40, do_sample=True, logits_processor=[processor])
        for row in written[:, inputs["input_ids"].shape[1] :]:
            text = tokenizer.decode(row, skip_special_tokens=True)
            self.assertIsInstance(json.loads(text)["name"], str, text)


def _texts():
    from minimind_cpp.masks import _bytes_of_tokens

    return _bytes_of_tokens(json.loads(File.to_str()))


if __name__ == "__main__":
    unittest.main()
