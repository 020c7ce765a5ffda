"""Compares the twin with independent implementations: python -m unittest discover -s tools/reference

transformers runs llama, qwen3 and qwen3_moe with the twin's random weights and from the golden folders. MiniMind's code of
each generation wrote the checkpoints in the folder checkpoints/ of the one that the environment's MINIMIND_REFERENCE names, if any.
"""

import dataclasses
import os
import sys
import unittest
from pathlib import Path

import numpy as np
import torch
import transformers

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(Path(__file__).resolve().parent))
from checkpoint import config_from, read_case, twin_of  # noqa: E402
from layouts import fuse_experts, hugging_face_config  # noqa: E402
from model import Config, MiniMind  # noqa: E402
from write_golden import randomize  # noqa: E402

REFERENCE = Path(os.environ["MINIMIND_REFERENCE"], "checkpoints") if "MINIMIND_REFERENCE" in os.environ else None
GOLDEN = ROOT / "tests" / "golden"
ROUNDING = 1e-5  # relative to the largest logit: about eighty times the epsilon of float32, for sums in another order
VISIBLE = 1e-3  # a wrong fact must move logits by more than the 2e-4 allowed to an implementation

DENSE = {"vocab_size": 128, "hidden_size": 48, "intermediate_size": 64, "num_hidden_layers": 2}
DENSE |= {"num_attention_heads": 6, "num_key_value_heads": 2, "max_position_embeddings": 32768, "hidden_act": "silu"}
DENSE |= {"rms_norm_eps": 1e-6, "rope_theta": 1e6, "use_moe": False, "bos_token_id": 1, "eos_token_id": 2}
EXPERTS = {"use_moe": True, "num_experts": 5, "moe_intermediate_size": 32, "norm_topk_prob": True}


def logits_of(model: torch.nn.Module, tokens: list[int]) -> np.ndarray:
    with torch.inference_mode():
        output = model(torch.tensor([tokens]))
    return (output if isinstance(output, torch.Tensor) else output.logits)[0].numpy()


def relative_difference(found: np.ndarray, expected: np.ndarray) -> float:
    """Returns the max difference, relative to the largest expected logit."""
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def golden_cases(pattern: str = "*"):
    for folder in sorted(GOLDEN.glob(pattern)):
        if (folder / "case.json").exists():
            yield folder, read_case(folder)


class TwinAgainstTransformers(unittest.TestCase):
    def check(self, hf_class: type, hf_config: type, family: str, raw: dict) -> None:
        torch.manual_seed(1)
        twin = MiniMind(config_from(family, raw)).eval()
        randomize(twin, torch.Generator().manual_seed(1))
        rope = {"rope_theta": raw["rope_theta"], "rope_type": "default"}
        config = hugging_face_config(raw, {"rope_parameters": rope})
        other = hf_class(hf_config(**config)).eval()
        other.load_state_dict(fuse_experts(twin.state_dict()))
        tokens = torch.randint(raw["vocab_size"], (64,)).tolist()
        self.assertLess(relative_difference(logits_of(twin, tokens), logits_of(other, tokens)), ROUNDING)

    def test_v2_dense_is_llama(self):
        self.check(transformers.LlamaForCausalLM, transformers.LlamaConfig, "v2", DENSE | {"rms_norm_eps": 1e-5})

    def test_v3_dense_is_qwen3(self):
        raw = DENSE | {"head_dim": 10, "num_key_value_heads": 3}
        self.check(transformers.Qwen3ForCausalLM, transformers.Qwen3Config, "v3", raw)

    def test_v3_untied_is_qwen3(self):
        raw = DENSE | {"tie_word_embeddings": False}
        self.check(transformers.Qwen3ForCausalLM, transformers.Qwen3Config, "v3", raw)

    def test_v3_moe_is_qwen3_moe(self):
        for top in (1, 2):
            for normalize in (True, False):
                with self.subTest(top=top, normalize=normalize):
                    raw = DENSE | EXPERTS | {"num_experts_per_tok": top, "norm_topk_prob": normalize}
                    self.check(transformers.Qwen3MoeForCausalLM, transformers.Qwen3MoeConfig, "v3", raw)

    def test_transformers_opens_the_golden_hugging_face_folders(self):
        for folder, case in golden_cases("hf-*"):
            with self.subTest(folder.name):
                model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
                difference = relative_difference(logits_of(model, case["tokens"]), np.load(folder / "logits.npy"))
                self.assertLess(difference, ROUNDING)


class TwinAgainstMiniMind(unittest.TestCase):
    @unittest.skipUnless(REFERENCE, "MINIMIND_REFERENCE is not set")
    def test_reference_checkpoints(self):
        for folder in sorted(REFERENCE.iterdir()):
            with self.subTest(folder.name):
                case = read_case(folder)
                twin = twin_of(folder, case)
                difference = relative_difference(logits_of(twin, case["tokens"]), np.load(folder / "logits.npy"))
                self.assertLess(difference, ROUNDING)
                prompt = case["tokens"][: case["prompt_len"]]
                self.assertEqual(twin.greedy(prompt, len(case["greedy"])), case["greedy"])


def wrong_facts(config: Config) -> dict[str, Config]:
    """Returns configs of this model, each with one mistake that an implementation could make."""
    change = dataclasses.replace
    wrong = {"epsilon": change(config, rms_norm_eps=1e-6 if config.rms_norm_eps == 1e-5 else 1e-5)}
    if config.head_dim > 2:  # with one plane both kinds of rotation and every theta are equal
        wrong["rotation"] = change(config, rope_adjacent_pairs=not config.rope_adjacent_pairs)
        wrong["theta"] = change(config, rope_theta=1e6 if config.rope_theta == 1e4 else 1e4)
    if config.yarn:
        wrong["yarn"] = change(config, yarn=None)
    for act in {"silu", "relu", "gelu", "gelu_pytorch_tanh", "sigmoid", "linear"} - {config.hidden_act}:
        wrong[act] = change(config, hidden_act=act)
    if config.num_experts:
        wrong["norm_topk_prob"] = change(config, norm_topk_prob=not config.norm_topk_prob)
        top = config.num_experts_per_tok
        wrong["experts per token"] = change(config, num_experts_per_tok=top + 1, norm_topk_prob=top > 1)
    return wrong


class GoldenCases(unittest.TestCase):
    def test_golden_cases_exist(self):
        self.assertGreater(len(list(golden_cases())), 0, "run write_golden.py first")

    def test_logits_of_the_twin_equal_the_stored_logits(self):
        for folder, case in golden_cases():
            with self.subTest(folder.name):
                twin = twin_of(folder, case)
                difference = relative_difference(logits_of(twin, case["tokens"]), np.load(folder / "logits.npy"))
                self.assertLess(difference, ROUNDING)

    def test_a_wrong_fact_changes_the_logits(self):
        for folder, case in golden_cases():
            twin, right = twin_of(folder, case), np.load(folder / "logits.npy")
            for fact, config in wrong_facts(twin.config).items():
                with self.subTest(f"{folder.name}: {fact}"):
                    other = MiniMind(config)
                    other.load_state_dict(twin.state_dict())
                    self.assertGreater(np.abs(logits_of(other, case["tokens"]) - right).max(), VISIBLE)

    def test_lora_changes_the_logits(self):
        for folder, case in golden_cases("*-lora"):
            with self.subTest(folder.name):
                base = twin_of(folder, {key: value for key, value in case.items() if key != "lora"})
                difference = np.abs(logits_of(base, case["tokens"]) - np.load(folder / "logits.npy")).max()
                self.assertGreater(difference, VISIBLE)


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
