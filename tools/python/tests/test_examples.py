"""Tests of the examples. Run: make test-examples. Those that need PyTorch are skipped without it, as in make test-python."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "tools" / "python" / "examples"
GOLDEN = ROOT / "tests" / "golden"
DEMO = str(ROOT / "weights" / "demo" / "model.pth")
PROGRAM = os.environ.get("MINIMIND_PROGRAM", str(ROOT / "minimind"))
REFERENCE = ROOT.parent / "shared" / "reference" / "checkpoints"
sys.path.insert(0, str(EXAMPLES))

from minimind_cpp import Model, SamplingParams  # noqa: E402

MISSING = [name for name in ("torch", "transformers", "safetensors") if importlib.util.find_spec(name) is None]
needs_pytorch = unittest.skipIf(MISSING, f"not installed: {', '.join(MISSING)}; run make test-examples")


def program(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], check=True, capture_output=True).stdout.decode()


def checkpoint_of(folder):
    file = folder / "model.pth"
    return file if file.exists() else folder


@needs_pytorch
class Greedy(unittest.TestCase):
    def test_tokens_are_those_of_pytorch_for_every_generation(self):
        from greedy import case_of, greedy_tokens

        names = ["v1-dense", "v1-moe", "v2-early-dense", "v2-dense", "v2-moe", "v3-dense", "v3-moe"]
        names += ["v2-lora", "v3-yarn", "hf-qwen3-moe-fused"]
        folders = [GOLDEN / name for name in names]
        folders += sorted(REFERENCE.iterdir()) if REFERENCE.exists() else []
        for folder in folders:
            with self.subTest(folder.name):
                path = checkpoint_of(folder)
                expected = case_of(path)["greedy"]
                ours, pytorch = greedy_tokens(path, [], "", len(expected))
                self.assertEqual((ours, pytorch), (expected, expected))

    def test_a_checkpoint_alone_has_the_defaults_of_its_generation(self):
        from greedy import greedy_tokens

        for name in ("v1-moe", "v2-early-dense", "v2-moe", "v3-moe"):
            case = json.loads((GOLDEN / name / "case.json").read_text())
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                shutil.copy(GOLDEN / name / "model.pth", folder)
                prompt = case["tokens"][: case["prompt_len"]]
                ours, pytorch = greedy_tokens(pathlib.Path(folder, "model.pth"), prompt, "", len(case["greedy"]))
                self.assertEqual((ours, pytorch), (case["greedy"], case["greedy"]))

    def test_a_difference_is_the_exit_status(self):
        import greedy

        for tokens, status in (([1, 2], 0), ([1, 3], 1)):
            with mock.patch.object(greedy, "greedy_tokens", return_value=([1, 2], tokens)), contextlib.redirect_stdout(
                io.StringIO()
            ), mock.patch.object(sys, "argv", ["greedy.py", "model.pth", "--ids", "1"]):
                self.assertEqual(greedy.main(), status)


@needs_pytorch
class Rollouts(unittest.TestCase):
    def test_training_with_our_rollouts_raises_the_reward(self):
        import torch
        from grpo import train
        from policies import new_policy, save_policy

        policy = new_policy("tiny")
        with tempfile.TemporaryDirectory() as folder:
            model = Model(save_policy(policy, pathlib.Path(folder)), type="f32")
        prompt = torch.arange(3, 11)
        steps = list(train(policy, model, prompt, steps=12, group=8, tokens=16, compare=True, rate=1e-2))
        self.assertLess(max(step.difference for step in steps), 1e-4)
        self.assertGreater(steps[-1].reward, steps[0].reward + 0.2)
        self.assertGreater(min(step.pytorch_seconds for step in steps), 0)

    def test_every_shape_has_the_log_probabilities_of_pytorch(self):
        import torch
        from grpo import train
        from policies import SHAPES, new_policy, save_policy

        for shape in SHAPES:
            with self.subTest(shape), tempfile.TemporaryDirectory() as folder:
                policy = new_policy(shape)
                model = Model(save_policy(policy, pathlib.Path(folder)), type="f32")
                (step,) = train(policy, model, torch.arange(3, 9), steps=1, group=2, tokens=6, compare=False, rate=1e-4)
                self.assertLess(step.difference, 1e-4)

    def test_the_engine_gives_what_minimind_trainers_read(self):
        import torch
        from grpo import log_probabilities
        from policies import new_policy
        from rollout_engine import RolloutEngine
        from transformers import PreTrainedTokenizerFast

        policy = new_policy("tiny")
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(ROOT / "tests/golden_tokenizer/tokenizer.json"))
        tokenizer.pad_token_id = 0
        engine = RolloutEngine(policy, tokenizer, top_k=0, top_p=1)
        prompts = torch.tensor([[0, 0, 5, 6], [7, 8, 9, 10]])  # padded on the left
        mask = torch.tensor([[0, 0, 1, 1], [1, 1, 1, 1]])
        torch.manual_seed(3)
        result = engine.rollout(prompts, mask, num_generations=3, max_new_tokens=7, temperature=1)
        self.assertEqual(result.prompt_lens.tolist(), [2, 2, 2, 4, 4, 4])
        self.assertEqual(result.completion_ids.shape, result.per_token_logps.shape)
        self.assertEqual(len(result.completions), 6)
        for row, size in enumerate(result.prompt_lens.tolist()):
            tokens = int(result.completion_mask[row].sum())
            ids = result.output_ids[row, : size + tokens]
            self.assertEqual(ids[size:].tolist(), result.completion_ids[row, :tokens].tolist())
            self.assertEqual(ids[:size].tolist(), prompts[row // 3][mask[row // 3].bool()].tolist())
            expected = log_probabilities(policy, ids[None], size)[0].detach()
            self.assertLess(float((expected - result.per_token_logps[row, :tokens]).abs().max()), 1e-4)
        with torch.no_grad():
            for weight in policy.parameters():
                weight.mul_(1.5)
        engine.update_policy(policy)
        torch.manual_seed(3)
        other = engine.rollout(prompts, mask, num_generations=3, max_new_tokens=7, temperature=1)
        self.assertNotEqual(other.completion_ids.tolist(), result.completion_ids.tolist())


class Perplexity(unittest.TestCase):
    def test_it_is_that_of_the_program(self):
        from perplexity import perplexity

        model = Model(DEMO)
        for name in ("pretrain", "sft"):
            data = ROOT / "tests" / "golden_dataset" / f"{name}.jsonl"
            expected = json.loads(program("perplexity", "-q", "-m", DEMO, "--jsonl", "-f", data, "--json"))
            tokens, nats = perplexity(model, data.open(encoding="utf-8"))
            self.assertEqual(tokens, expected["tokens"])
            self.assertAlmostEqual(nats, expected["nats_per_token"], delta=1e-6)


@unittest.skipIf(importlib.util.find_spec("lm_eval") is None, "not installed: lm_eval; run make test-examples")
class Harness(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        from harness import MiniMindLM
        from lm_eval.api.instance import Instance

        cls.model = Model(DEMO)
        cls.harness = MiniMindLM(cls.model)
        cls.request = staticmethod(lambda kind, *arguments: Instance(kind, {}, arguments, 0))

    def test_sums_are_those_of_perplexity(self):
        texts = ["床前明月光，疑是地上霜。", "River, moon: 江上", "山" * 3000]
        totals = self.harness.loglikelihood_rolling([self.request("loglikelihood_rolling", text) for text in texts])
        for text, total in zip(texts[:2], totals):
            ids = ",".join(map(str, self.model.tokenizer.encode_prompt(text)))
            expected = json.loads(program("perplexity", "-q", "-m", DEMO, "--json", "--tokens", ids))
            self.assertAlmostEqual(-total, expected["nats_per_token"] * expected["tokens"], delta=1e-4)
        self.assertLess(totals[2], 0)

    def test_a_continuation_has_its_sum_and_is_greedy_or_not(self):
        greedy = self.model.generate(self.model.tokenizer.encode("床前"), SamplingParams(temperature=0, max_tokens=4)).text
        requests = [self.request("loglikelihood", "床前", text) for text in (greedy, "，三二一零。")]
        (total, is_greedy), (other, other_is_greedy) = self.harness.loglikelihood(requests)
        self.assertEqual((is_greedy, other_is_greedy), (True, False))
        self.assertGreater(total, other)
        ids, before = self.model.tokenizer.encode("床前" + greedy), len(self.model.tokenizer.encode("床前"))
        self.assertAlmostEqual(total, float(self.model.score(ids)[before:].sum()), delta=1e-4)

    def test_texts_end_at_the_strings_of_a_task(self):
        options = {"until": ["，"], "max_gen_toks": 20}
        (text,) = self.harness.generate_until([self.request("generate_until", "床前", options)])
        prompt = self.model.tokenizer.encode("床前")
        params = SamplingParams(temperature=0, max_tokens=20, stop="，")
        self.assertEqual(text, self.model.generate(prompt, params).text)


if __name__ == "__main__":
    unittest.main()
