"""Tests of the rollouts for TRL. Run: make test-examples"""

from __future__ import annotations

import importlib.util
import os
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
STEPS = int(os.environ.get("MINIMIND_TRL_STEPS", "6"))
sys.path.insert(0, str(ROOT / "tools" / "python" / "examples"))


@unittest.skipIf(importlib.util.find_spec("trl") is None, "not installed: trl; run make test-examples")
class Trl(unittest.TestCase):
    def test_the_trainer_has_the_log_probabilities_of_the_rollouts(self):
        import torch
        from datasets import Dataset
        from grpo import log_probabilities
        from policies import COMMON, SIZE_TINY
        from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
        from trl import GRPOConfig, GRPOTrainer

        from minimind_cpp.trl import Rollouts

        tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(ROOT / "tests/golden_tokenizer/tokenizer.json"))
        tokenizer.pad_token_id, tokenizer.eos_token_id = 0, 2
        torch.manual_seed(0)
        shape = COMMON | SIZE_TINY | {"rms_norm_eps": 1e-6, "vocab_size": len(tokenizer)}
        policy = Qwen3ForCausalLM(Qwen3Config(**shape)).float()
        rollouts, differences, rewards = Rollouts(), [], []

        def checked(prompts, trainer):
            output = rollouts(prompts, trainer)
            for prompt, ids, found in zip(*(output[name] for name in ("prompt_ids", "completion_ids", "logprobs"))):
                with torch.no_grad():
                    expected = log_probabilities(trainer.model, torch.tensor([[*prompt, *ids]]), len(prompt))[0]
                differences.append(float((expected - torch.tensor(found)).abs().max()))
            return output

        def reward(completion_ids, **_):
            found = [sum(token % 2 == 0 for token in ids) / len(ids) for ids in completion_ids]
            rewards.append(sum(found) / len(found))
            return found

        with tempfile.TemporaryDirectory() as folder:
            settings = GRPOConfig(
                folder, max_steps=STEPS, per_device_train_batch_size=8, num_generations=8, max_completion_length=12,
                learning_rate=1e-2, use_cpu=True, bf16=False, report_to="none", save_strategy="no", disable_tqdm=True, beta=0.0,
            )  # fmt: skip
            trainer = GRPOTrainer(
                policy, reward, settings, Dataset.from_dict({"prompt": ["ab", "ba", "a b"] * 4}),
                processing_class=tokenizer, rollout_func=checked,
            )  # fmt: skip
            trainer.train()
        self.assertEqual(len(rewards), STEPS)
        self.assertLess(max(differences), 1e-5)
        if STEPS >= 50:
            self.assertGreater(sum(rewards[-5:]), sum(rewards[:5]) + 0.5)
        trainer.args.temperature = 0.5
        with self.assertRaisesRegex(ValueError, "temperature is 0.5, expected 1"):
            rollouts(["ab"], trainer)


if __name__ == "__main__":
    unittest.main()
