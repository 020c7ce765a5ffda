"""Rollouts for TRL, in the trainer's process or by `minimind serve`. Requires PyTorch and TRL, which call it.

GRPOTrainer(..., rollout_func=Rollouts()) samples in the process. After use_serve(folder), trainers with use_vllm=True and
vllm_mode="server" sample from a server that `minimind serve -m POLICY --type f32 --weights-from FOLDER` started.
"""

from __future__ import annotations

import contextlib
import importlib
import pathlib
import secrets
import tempfile
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

from minimind_cpp._tensors import merged_name
from minimind_cpp.model import Model
from minimind_cpp.sampling import SamplingParams


def _require(name: str, found: Any, expected: float) -> None:
    if found != expected:
        raise ValueError(f"{name} is {found}, expected {expected}, at which log-probabilities are computed")


@contextlib.contextmanager
def _merged(policy: Any) -> Iterator[Dict[str, Any]]:
    """The weights of a policy, with its adapter of PEFT added meanwhile."""
    has_adapter = hasattr(policy, "merge_adapter")
    if has_adapter:
        policy.merge_adapter()
    try:
        yield {name: tensor for name, tensor in policy.state_dict().items() if not has_adapter or ".lora_" not in name}
    finally:
        if has_adapter:
            policy.unmerge_adapter()


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
        _require("temperature", settings.temperature, 1)
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
            torch: Any = importlib.import_module("torch")
            with tempfile.TemporaryDirectory() as folder, _merged(policy) as weights:
                torch.save({merged_name(name): tensor for name, tensor in weights.items()}, f"{folder}/pytorch_model.bin")
                policy.config.save_pretrained(folder)
                trainer.processing_class.save_pretrained(folder)
                self._model = Model(folder, **self._options)
        elif trainer.state.global_step != self._step:
            with _merged(policy) as weights:
                self._model.load_state_dict(weights)
        self._step = trainer.state.global_step
        return self._model


def use_serve(folder: str) -> None:
    """Lets TRL's trainers take `minimind serve` for a server of vLLM, which need not be installed.

    New weights go through a file in `folder`, such as one in /dev/shm. The server must have it as --weights-from.
    """
    if not pathlib.Path(folder).is_dir():
        raise FileNotFoundError(f"{folder}: is no folder, expected that of the server's --weights-from")
    client: Any = importlib.import_module("trl.generation.vllm_client")
    generation: Any = importlib.import_module("trl.generation.vllm_generation")
    for module in (client, generation):
        module.is_vllm_available = lambda *_, **__: True
    generation.VLLMClient = type("ServeClient", (_FileWeights, client.VLLMClient), {"folder": folder})


class _FileWeights:
    """What a VLLMClient does differently with a server that takes weights from files instead of by NCCL."""

    folder: str
    base_url: str
    _post: Callable[..., Any]
    _updating_weights: bool
    _tensors: Dict[str, Any]

    def generate(self, *arguments: Any, **settings: Any) -> Dict[str, List[Any]]:
        """As TRL's. Raises ValueError unless tokens are sampled by the untouched logits, of which the log-probabilities are."""
        given = {**settings, **(settings.get("generation_kwargs") or {})}
        off = {"temperature": 1, "top_p": 1, "top_k": 0, "min_p": 0, "repetition_penalty": 1}
        for name, expected in off.items():
            _require(name, given.get(name, expected), expected)
        output: Dict[str, List[Any]] = super().generate(*arguments, **settings)  # type: ignore[misc]
        return output

    def get_sequence_logprobs(self, *arguments: Any, temperature: float = 1.0, **settings: Any) -> Dict[str, List[Any]]:
        """As TRL's, of a server whose --max-logprobs is at least top_logprobs."""
        _require("temperature", temperature, 1)
        found: Dict[str, List[Any]] = super().get_sequence_logprobs(*arguments, **settings)  # type: ignore[misc]
        return found

    def get_server_info(self) -> Dict[str, Any]:
        return {"model_config": {"logprobs_mode": "processed_logprobs"}}  # generate() makes them equal to the raw ones

    def init_communicator(self, device: Any = 0) -> None:
        """There is none: see _finish_weight_update()."""

    def update_named_params(self, metadata: Any, named_params: Iterable[Tuple[str, Any]]) -> None:
        if not self._updating_weights:
            self._start_weight_update()
        for name, tensor in named_params:  # a merged adapter is taken out again when the iterator ends
            self._tensors[name] = tensor.detach().to("cpu", copy=True).contiguous()
        if not self._updating_weights:
            self._finish_weight_update()

    def _start_weight_update(self) -> None:
        self._tensors = {}

    def _finish_weight_update(self) -> None:
        safetensors: Any = importlib.import_module("safetensors.torch")
        with tempfile.TemporaryDirectory(dir=self.folder) as place:
            file = pathlib.Path(place, "model.safetensors")
            safetensors.save_file(self._tensors, file)
            self._tensors = {}
            self._post(f"{self.base_url}/update_weights_from_disk", json={"model_path": str(file.resolve())})
