"""Tests of the rollouts for TRL, of both kinds, over 200 steps. Run: make test-examples"""

from __future__ import annotations

import contextlib
import importlib.util
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
STEPS = 200
sys.path.insert(0, str(ROOT / "tools" / "python" / "examples"))


@contextlib.contextmanager
def served(*options):
    """The address of a server."""
    command = [sys.executable, "-m", "minimind_cpp", "serve", "--port", "0", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            address = next(found[0] for line in process.stderr if (found := re.search(r"http://\S+", line)))
            threading.Thread(target=process.stderr.read, daemon=True).start()  # the log, so that the pipe never fills
            yield address
        finally:
            process.terminate()


@unittest.skipIf(importlib.util.find_spec("trl") is None, "not installed: trl; run make test-examples")
class Trl(unittest.TestCase):
    def setUp(self):
        import torch
        from policies import COMMON, SIZE_TINY
        from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(ROOT / "tests/golden_tokenizer/tokenizer.json"))
        self.tokenizer.pad_token_id, self.tokenizer.eos_token_id = 0, 2
        torch.manual_seed(0)
        torch.set_num_threads(1)  # more gain nothing at this size, and wait for each other on a busy machine
        shape = COMMON | SIZE_TINY | {"rms_norm_eps": 1e-6, "vocab_size": len(self.tokenizer)}
        shape |= {"rope_theta": 1e4}  # not MiniMind's, so that it must reach the engine
        self.policy = Qwen3ForCausalLM(Qwen3Config(**shape)).float()
        self.rewards, self.differences = [], []

    def reward(self, completion_ids, **_):
        """The share of even tokens, and noise, so that each step changes the weights."""
        found = [sum(token % 2 == 0 for token in ids) / len(ids) for ids in completion_ids]
        self.rewards.append(sum(found) / len(found))
        return [share + random.random() / 10 for share in found]

    def check(self, trainer, prompts, completions, logprobs):
        """Compares the log-probabilities of rollouts with those of the trainer's policy as it is now."""
        import torch
        from grpo import log_probabilities

        for prompt, ids, found in zip(prompts, completions, logprobs):
            with torch.no_grad():
                expected = log_probabilities(trainer.model, torch.tensor([[*prompt, *ids]]), len(prompt))[0]
            self.differences.append(float((expected - torch.tensor(found)).abs().max()))

    def checked(self, rollouts):
        """The rollout function, whose log-probabilities are compared with those of the trainer's policy."""

        def checked(prompts, trainer):
            output = rollouts(prompts, trainer)
            self.check(trainer, *(output[name] for name in ("prompt_ids", "completion_ids", "logprobs")))
            return output

        return checked

    def trainer(self, rollout_func=None, peft_config=None, **settings):
        from datasets import Dataset
        from trl import GRPOConfig, GRPOTrainer

        config = GRPOConfig(
            self.folder, per_device_train_batch_size=8, num_generations=8, max_completion_length=12,
            learning_rate=2e-3, use_cpu=True, bf16=False, report_to="none", save_strategy="no", disable_tqdm=True, beta=0.0,
            logging_steps=1, lr_scheduler_type="constant", **{"max_steps": STEPS, **settings},
        )  # fmt: skip
        prompts = Dataset.from_dict({"prompt": ["ab", "ba", "a b"] * 4})
        return GRPOTrainer(
            self.policy, self.reward, config, prompts, processing_class=self.tokenizer, rollout_func=rollout_func,
            peft_config=peft_config,
        )  # fmt: skip

    def train(self, trainer):
        with contextlib.redirect_stdout(None):
            trainer.train()
        self.assertEqual(len(self.rewards), STEPS)
        self.assertEqual(len(self.differences), STEPS * 8)
        steps = [entry for entry in trainer.state.log_history if "grad_norm" in entry]
        self.assertGreater(min(step["grad_norm"] for step in steps), 0, "each step changes the weights")
        self.assertLess(max(self.differences), 1e-5)
        self.assertGreater(sum(self.rewards[-5:]), sum(self.rewards[:5]) + 0.5)
        return steps

    def test_the_trainer_has_the_log_probabilities_of_the_rollouts(self):
        from minimind_cpp.trl import Rollouts

        rollouts = Rollouts()
        trainer = self.trainer(self.checked(rollouts))
        self.train(trainer)
        trainer.args.temperature = 0.5
        with self.assertRaisesRegex(ValueError, "temperature is 0.5, expected 1"):
            rollouts(["ab"], trainer)

    def test_rollouts_have_the_adapter_of_peft_that_is_trained(self):
        from minimind_cpp.trl import Rollouts
        from peft import LoraConfig

        adapter = LoraConfig(r=4, target_modules=["q_proj", "down_proj"], init_lora_weights=False, task_type="CAUSAL_LM")
        trainer = self.trainer(self.checked(Rollouts()), adapter, max_steps=10)
        with contextlib.redirect_stdout(None):
            trainer.train()
        self.assertEqual(len(self.differences), 80)
        self.assertLess(max(self.differences), 1e-5)

    def test_the_trainer_has_the_log_probabilities_of_a_server(self):
        from minimind_cpp.trl import use_serve

        with self.assertRaisesRegex(FileNotFoundError, "/nowhere: is no folder"):
            use_serve("/nowhere")
        self.policy.save_pretrained(self.folder + "/policy")
        self.tokenizer.save_pretrained(self.folder + "/policy")
        with tempfile.TemporaryDirectory(dir="/dev/shm") as weights:
            use_serve(weights)
            options = ("-m", self.folder + "/policy", "--type", "f32", "--weights-from", weights)
            with served(*options) as address:
                trainer = self.trainer(use_vllm=True, vllm_mode="server", vllm_server_base_url=address)
                client = trainer.vllm_generation.vllm_client
                generate = type(client).generate

                def checked(**settings):
                    output = generate(client, **settings)
                    count = settings["n"]
                    prompts = [ids for ids in output["prompt_ids"] for _ in range(count)]
                    logprobs = [[token for (token,) in text] for text in output["logprobs"]]
                    self.check(trainer, prompts, output["completion_ids"], logprobs)
                    return output

                client.generate = checked
                steps = self.train(trainer)
                with self.assertRaisesRegex(ValueError, "top_k is 5, expected 0"):
                    generate(client, ["ab"], top_k=5)
                self.assertLess(max(step["sampling/sampling_logp_difference/max"] for step in steps), 1e-5)

    def test_a_server_scores_the_texts_of_a_student(self):
        import torch
        from minimind_cpp.trl import use_serve
        from trl.generation import vllm_generation

        self.policy.save_pretrained(self.folder + "/policy")
        self.tokenizer.save_pretrained(self.folder + "/policy")
        use_serve(self.folder)
        vocabulary = len(self.tokenizer)
        options = ("-m", self.folder + "/policy", "--type", "f32", "--max-logprobs", str(vocabulary))
        with served(*options, "--trust-request-chat-template") as address:
            client = vllm_generation.VLLMClient(address)
            sequences, starts = [[5, 6, 7, 8, 9, 10], [11, 12, 13, 14]], [2, 1]
            scores = client.get_sequence_logprobs(sequences, starts, top_logprobs=vocabulary)
            for i, (ids, start) in enumerate(zip(sequences, starts)):
                with torch.no_grad():
                    expected = self.policy(torch.tensor([ids])).logits[0, start - 1 : -1].log_softmax(-1)
                found = torch.tensor(scores["logprobs"][i]), torch.tensor(scores["logprob_token_ids"][i])
                self.assertLess(float((expected.gather(-1, found[1]) - found[0]).abs().max()), 1e-5)
                actual = expected.gather(-1, torch.tensor([ids[start:]]).T)
                self.assertLess(float((actual - torch.tensor(scores["actual_logprobs"][i])).abs().max()), 1e-5)
            with self.assertRaisesRegex(ValueError, "temperature is 0.5, expected 1"):
                client.get_sequence_logprobs(sequences, starts, temperature=0.5)
            template = "{% for message in messages %}{{ message.content }}!{% endfor %}"
            answer = client.chat([[{"role": "user", "content": "ab"}]], max_tokens=1, chat_template=template)
            self.assertEqual(answer["prompt_ids"], [self.tokenizer("ab!")["input_ids"]])


if __name__ == "__main__":
    unittest.main()
