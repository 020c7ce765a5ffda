"""The tokenizer and the chat template of a model."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Mapping, Optional, Sequence, Union, overload

from minimind_cpp import _library as c
from minimind_cpp._arguments import Ids, check_messages, elements, id_array, json_bytes, pointer, text_bytes

if TYPE_CHECKING:
    from typing import Literal

    from minimind_cpp.model import Model

    Messages = Sequence[Mapping[str, Any]]
    Tools = Optional[Sequence[Mapping[str, Any]]]


class Tokenizer:
    """Text to token ids and back, with the ids of Hugging Face's tokenizers. From `Model.tokenizer`."""

    def __init__(self, model: "Model") -> None:
        self._model = model

    def encode(self, text: str, add_special_tokens: bool = True) -> List[int]:
        """The ids of a text, with what the tokenizer's post-processor adds, which for MiniMind's own is nothing."""
        return self._encode(text_bytes(text, "text"), c.ENCODE_SPECIAL if add_special_tokens else c.ENCODE_TEXT)

    def encode_prompt(self, text: str) -> List[int]:
        """The ids of bos_token and the text, as MiniMind's scripts and `Model.generate` continue a text."""
        return self._encode(text_bytes(text, "text"), c.ENCODE_PROMPT)

    def decode(self, ids: Ids, skip_special_tokens: bool = False) -> str:
        """The text of ids. Ids without a token are omitted."""
        array = id_array(ids, "ids")

        def write(model: Any, buffer: Any, capacity: int, size: Any) -> Any:
            return c.library.minimind_decode(
                model, pointer(array, ctypes.c_int32), len(array), skip_special_tokens, buffer, capacity, size
            )

        return self._model._text(write, 16 * len(array) + 64)

    def batch_decode(self, sequences: Iterable[Ids], skip_special_tokens: bool = False) -> List[str]:
        return [self.decode(ids, skip_special_tokens) for ids in elements(sequences, "sequences", "a list of lists of ids")]

    @property
    def eos_token_id(self) -> Optional[int]:
        return None if self._model._eos_token < 0 else self._model._eos_token

    def __len__(self) -> int:
        """The number of ids that it has."""
        return self._model._tokenizer_size

    @overload
    def apply_chat_template(
        self,
        messages: "Messages",
        tools: "Tools" = None,
        add_generation_prompt: bool = False,
        tokenize: "Literal[True]" = True,
        **variables: Any,
    ) -> List[int]: ...
    @overload
    def apply_chat_template(
        self,
        messages: "Messages",
        tools: "Tools" = None,
        add_generation_prompt: bool = False,
        *,
        tokenize: "Literal[False]",
        **variables: Any,
    ) -> str: ...
    @overload
    def apply_chat_template(
        self,
        messages: "Messages",
        tools: "Tools" = None,
        add_generation_prompt: bool = False,
        tokenize: bool = True,
        **variables: Any,
    ) -> Union[str, List[int]]: ...
    def apply_chat_template(
        self,
        messages: "Messages",
        tools: "Tools" = None,
        add_generation_prompt: bool = False,
        tokenize: bool = True,
        **variables: Any,
    ) -> Union[str, List[int]]:
        """The prompt of a conversation as ids, or as text unless `tokenize`, as in transformers.

        `variables` are those of the template, such as MiniMind's open_thinking=True.
        """
        check_messages(messages)
        conversation: Dict[str, Any] = {"messages": messages, "add_generation_prompt": add_generation_prompt, **variables}
        if tools is not None:
            conversation["tools"] = tools
        json = json_bytes(conversation, "the conversation")

        def write(model: Any, buffer: Any, capacity: int, size: Any) -> Any:
            return c.library.minimind_render(model, json, len(json), buffer, capacity, size)

        text = self._model._text(write, 2 * len(json) + 4096)
        return self.encode(text, add_special_tokens=False) if tokenize else text

    def _encode(self, text: bytes, encoding: int) -> List[int]:
        def write(model: Any, ids: Any, capacity: int, size: Any) -> Any:
            return c.library.minimind_encode(model, text, len(text), encoding, ids, capacity, size)

        encoded: List[int] = self._model._ids(write, len(text) + 64).tolist()
        return encoded
