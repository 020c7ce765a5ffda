"""Rollouts for TRL: GRPOTrainer(..., rollout_func=Rollouts()). Requires PyTorch and TRL, which call it."""

from __future__ import annotations

import secrets
import tempfile
from typing import Any, Dict, List, Optional

from minimind_cpp.model import Model
from minimind_cpp.sampling import SamplingParams


class Rollouts:
    """Samples what a GRPOTrainer asks for, by its settings and with the weights of each step. `options` are those of Model.

    The trainer computes log-probabilities at its temperature, the engine at 1: any other temperature is a ValueError.
    """

    def __init__(self, **options: Any) -> None:
        self._options = {"type": "f32", **options}
        self._model: Optional[Model] = None
        self._step = -1

    def __call__(self, prompts: List[Any], trainer: Any) -> Dict[str, List[Any]]:
        settings = trainer.args
        if settings.temperature != 1:
            raise ValueError(f"temperature is {settings.temperature}, expected 1, at which log-probabilities are computed")
        params = SamplingParams(
            max_tokens=settings.max_completion_length, top_p=settings.top_p, top_k=settings.top_k, min_p=settings.min_p or 0,
            repeat_penalty=settings.repetition_penalty, temperature=1, logprobs=0, seed=secrets.randbits(62),
        )  # fmt: skip
        ids = [self._ids(prompt, trainer) for prompt in prompts]
        written = self._updated_model(trainer).generate_batch(ids, params)
        return {
            "prompt_ids": ids,
            "completion_ids": [text.ids.tolist() for text in written],
            "logprobs": [text.log_probabilities.tolist() for text in written if text.log_probabilities is not None],
        }

    def _ids(self, prompt: Any, trainer: Any) -> List[int]:
        tokenizer = trainer.processing_class
        if isinstance(prompt, str):
            text: List[int] = tokenizer(prompt)["input_ids"]
            return text
        conversation: List[int] = tokenizer.apply_chat_template(
            prompt, tools=trainer.tools or None, chat_template=trainer.chat_template, add_generation_prompt=True,
            tokenize=True, return_dict=False, **trainer.chat_template_kwargs,
        )  # fmt: skip
        return conversation

    def _updated_model(self, trainer: Any) -> Model:
        """The engine with the weights that the trainer has by now."""
        policy = trainer.accelerator.unwrap_model(trainer.model)
        if self._model is None:
            with tempfile.TemporaryDirectory() as folder:
                policy.save_pretrained(folder)
                trainer.processing_class.save_pretrained(folder)
                self._model = Model(folder, **self._options)
        elif trainer.state.global_step != self._step:
            self._model.load_state_dict(policy.state_dict())
        self._step = trainer.state.global_step
        return self._model
