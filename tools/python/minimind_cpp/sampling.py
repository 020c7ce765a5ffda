"""How texts are sampled and where they end."""

from __future__ import annotations

import copy
import ctypes
from dataclasses import dataclass, field
from typing import Any, Callable, Mapping, Optional, Sequence, Union

import numpy as np
import numpy.typing as npt

from minimind_cpp import _library as c
from minimind_cpp._arguments import count, elements, id_array, json_bytes, name_bytes, number, strings, text_bytes

NUMBERS = (
    "temperature", "top_p", "min_p", "typical_p", "repeat_penalty", "presence_penalty", "frequency_penalty",
    "dry_multiplier", "dry_base",
)  # fmt: skip
COUNTS = ("max_tokens", "min_tokens", "top_k", "repeat_last_n", "dry_allowed_length", "dry_penalty_last_n")
FLAGS = ("ignore_eos", "open_schema")
LISTS = {
    "stop": "text or a list of texts", "stop_token_ids": "a list of token ids", "choice": "a list of texts",
    "dry_sequence_breakers": "a list of texts",
}  # fmt: skip
CONSTRAINTS = ("grammar", "regex", "choice", "json_schema")


@dataclass(frozen=True)
class SamplingParams:
    """How a text is sampled and where it ends, with the defaults and limits of `minimind generate`.

    At most one of grammar, regex, choice and json_schema constrains the text. A wrong type is a TypeError here, a value out of
    its range a ValueError of the call that uses it.
    """

    n: int = 1  # texts of each prompt
    max_tokens: int = 512
    min_tokens: int = 0  # nothing ends the text before, but a stop string
    temperature: float = 0.85  # 0: always the token with the largest logit
    top_k: int = 50  # 0: off
    top_p: float = 0.95  # 1: off
    min_p: float = 0.0
    typical_p: float = 1.0
    repeat_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repeat_last_n: int = 1073741824  # the three penalties above are for so many last tokens; 0: off
    dry_multiplier: float = 0.0
    dry_base: float = 1.75
    dry_allowed_length: int = 2
    dry_penalty_last_n: int = 64
    dry_sequence_breakers: Sequence[str] = ("\n", ":", '"', "*")  # texts that end a repetition
    seed: Optional[int] = None  # equal seeds give equal texts; text i of a call has the seed plus i; None: random
    stop: Union[str, Sequence[str]] = ()  # any of these texts ends the text and is no part of it
    stop_token_ids: Sequence[int] = ()  # any of these ends the text, too
    ignore_eos: bool = False
    logit_bias: Mapping[int, float] = field(default_factory=dict, hash=False)  # is added to the logits of tokens; -inf bans one
    grammar: Optional[str] = None  # GBNF
    regex: Optional[str] = None  # that the whole text matches
    choice: Optional[Sequence[str]] = None  # texts of which it is one
    json_schema: Union[str, Mapping[str, Any], type, None] = field(default=None, hash=False)  # JSON, or a class of Pydantic
    open_schema: bool = False  # objects may have properties that json_schema does not name, if it does not forbid them
    # Returns the logits from which a token is sampled: f(ids, logits) of the prompt and the text so far, int32 [T] and float32
    # [vocab_size], which it may change; -inf bans a token. It must not use the model.
    logits_processor: Optional[Callable[[npt.NDArray[np.int32], npt.NDArray[np.float32]], npt.NDArray[np.float32]]] = None
    logprobs: Optional[int] = None  # log-probabilities of each token and of so many of the most likely ones; None: none

    def __post_init__(self) -> None:
        self._copy_lists()
        for name in NUMBERS:
            number(getattr(self, name), name)
        for name in COUNTS:
            count(getattr(self, name), name)
        count(self.n, "n", 1)
        if self.seed is not None:
            count(self.seed, "seed", 0, 2**64 - 1)
        if self.logprobs is not None:
            count(self.logprobs, "logprobs")
        for name in FLAGS:
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} is of type {type(getattr(self, name)).__name__}, expected bool")
        if self.logits_processor is not None and not callable(self.logits_processor):
            raise TypeError(f"logits_processor is of type {type(self.logits_processor).__name__}, expected a function")
        self._request(0)

    def _copy_lists(self) -> None:
        """So that they stay as they are when the caller changes them."""
        for name, expected in LISTS.items():
            given = getattr(self, name)
            if given is not None and not isinstance(given, str):
                object.__setattr__(self, name, tuple(elements(given, name, expected)))
        for name in ("logit_bias", "json_schema"):
            if isinstance(getattr(self, name), Mapping):
                object.__setattr__(self, name, copy.deepcopy(dict(getattr(self, name))))

    @property
    def constrains(self) -> bool:
        return any(getattr(self, name) is not None for name in CONSTRAINTS)

    def _request(self, seed: int) -> c.Request:
        """The request of a text, without its prompt."""
        request = c.Request()
        c.library.minimind_default_request(ctypes.byref(request), ctypes.sizeof(request))
        for name in (*NUMBERS, *COUNTS):
            setattr(request, name, getattr(self, name))
        for name in FLAGS:
            setattr(request, name, getattr(self, name))
        request.seed = seed
        request.log_probabilities, request.top_count = self.logprobs is not None, self.logprobs or 0
        self._add_ends(request)
        self._add_bias(request)
        self._add_constraint(request)
        return request

    def _add_ends(self, request: c.Request) -> None:
        stops = [self.stop] if isinstance(self.stop, str) else self.stop
        texts = [name_bytes(text, "stop") for text in stops]
        request.stop, request.stop_count = strings(texts), len(texts)
        if isinstance(self.dry_sequence_breakers, str):
            raise TypeError("dry_sequence_breakers is of type str, expected a list of texts")
        breakers = [name_bytes(text, "dry_sequence_breakers") for text in self.dry_sequence_breakers]
        request.dry_sequence_breakers, request.dry_sequence_breaker_count = strings(breakers), len(breakers)
        ids = id_array(self.stop_token_ids, "stop_token_ids")
        request.stop_tokens, request.stop_token_count = (ctypes.c_int32 * len(ids))(*ids.tolist()), len(ids)

    def _add_bias(self, request: c.Request) -> None:
        if not isinstance(self.logit_bias, Mapping):
            raise TypeError(f"logit_bias is of type {type(self.logit_bias).__name__}, expected a dict of token ids and numbers")
        entries = [
            c.LogitBias(count(token, "a token of logit_bias", most=2**31 - 1), number(bias, "logit_bias"))
            for token, bias in self.logit_bias.items()
        ]
        request.logit_bias, request.logit_bias_count = (c.LogitBias * len(entries))(*entries), len(entries)

    def _add_constraint(self, request: c.Request) -> None:
        given = [name for name in CONSTRAINTS if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} are given, expected one of them")
        if self.choice is not None:
            if isinstance(self.choice, str):
                raise TypeError("choice is of type str, expected a list of texts")
            texts = [name_bytes(text, "choice") for text in self.choice]
            if not texts:
                raise ValueError("choice is empty, expected texts")
            request.choices, request.choice_count = strings(texts), len(texts)
        elif given:
            value = getattr(self, given[0])
            text = _schema_bytes(value) if given == ["json_schema"] else text_bytes(value, given[0])
            setattr(request, given[0], text)
            setattr(request, f"{given[0]}_size", len(text))


def _schema_bytes(schema: Any) -> bytes:
    if isinstance(schema, str):
        return text_bytes(schema, "json_schema")
    if isinstance(schema, type):
        if not hasattr(schema, "model_json_schema"):
            raise TypeError(f"json_schema is the class {schema.__name__}, expected JSON or a class of Pydantic")
        schema = schema.model_json_schema()
    return json_bytes(schema, "json_schema")
