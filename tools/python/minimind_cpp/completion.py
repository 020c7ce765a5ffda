"""What is given to a model, and what it writes."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import ctypes
import json
import logging
import os
import sys
import threading
from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Any,
    AsyncIterator,
    Callable,
    Deque,
    Dict,
    Generic,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    TypeVar,
    Union,
)

import numpy as np
import numpy.typing as npt

from minimind_cpp import _library as c
from minimind_cpp.processor import Processor

if TYPE_CHECKING:
    from minimind_cpp.model import Model

logger = logging.getLogger("minimind_cpp")
Piece = TypeVar("Piece")


@dataclass(frozen=True)
class Chat:
    """A prompt: OpenAI's messages, to which the model answers.

    thinking: on, off, or as the chat template decides. plain_content: messages and tools are ordinary text, also where they
    spell control tokens such as <|im_end|>, which otherwise a user can write, as in transformers.
    """

    messages: Sequence[Mapping[str, Any]]
    tools: Optional[Sequence[Mapping[str, Any]]] = None
    thinking: Optional[bool] = None
    plain_content: bool = False


@dataclass(frozen=True, eq=False)
class Completion:
    """A text that a model wrote."""

    text: str  # without tokens of control and stop strings; "" of a model without a tokenizer
    ids: npt.NDArray[np.int32]  # [T], as sampled, with the token that ended the text
    finish_reason: str  # "stop", "length" or "cancelled"
    prompt_tokens: int
    index: int  # of its prompt among those of the call
    weights: npt.NDArray[np.int64]  # [T], Model.weights when the token was computed
    # Base e, of the untouched logits, as a trainer computes them; None unless SamplingParams.logprobs asks for them.
    log_probabilities: Optional[npt.NDArray[np.float64]]  # [T]
    top_ids: Optional[npt.NDArray[np.int32]]  # [T, logprobs], the most likely first
    top_log_probabilities: Optional[npt.NDArray[np.float64]]  # [T, logprobs]
    # Of a Chat: {"role": "assistant", "content": ...}, with "reasoning_content" and "tool_calls" if the model wrote some.
    message: Optional[Dict[str, Any]]


class Stream(Generic[Piece]):
    """The pieces of a text as they are written, for `for` and `async for`. To drop the stream drops the text.

    The text starts when its first piece is asked for, with the weights of that time. Threads may share a stream: each piece is for
    one of them. Of an `async for` that is cancelled, the next one gets the piece.
    """

    def __init__(self, text: "Text") -> None:
        self._text = text
        self._lock = threading.RLock()  # of the text
        self._pieces: Deque[Piece] = collections.deque()

    def __iter__(self) -> Iterator[Piece]:
        return self

    def __next__(self) -> Piece:
        while self._wait():
            with contextlib.suppress(IndexError):  # another thread took it
                return self._pieces.popleft()
        raise StopIteration

    def __aiter__(self) -> AsyncIterator[Piece]:
        return self

    async def __anext__(self) -> Piece:
        while await asyncio.to_thread(self._wait):
            with contextlib.suppress(IndexError):
                return self._pieces.popleft()
        raise StopAsyncIteration

    def _wait(self) -> bool:
        """Whether there is another piece, once that is known."""
        self._text.model._check_may_wait()
        with self._lock:
            while not self._pieces and not self._text.ended:
                if self._text.polled:  # the first poll starts it
                    self._text.model._step()
                self._pieces += self._text.poll()
            return bool(self._pieces)

    def abort(self) -> None:
        """Ends the text before its next token, from any thread: its finish_reason is then "cancelled"."""
        self._text.cancel()

    @property
    def completion(self) -> Completion:
        """The whole text. Raises ValueError before its end."""
        if not self._text.ended:
            raise ValueError("the text has not ended, expected a stream that was read to its end")
        with self._lock:  # another thread may be adding its last piece
            return self._text.completion()


class Text(c.Owner):
    """A text that the library writes, and what it has written."""

    def __init__(self, model: "Model", index: int, reader: Union["_Answer", "_PlainAnswer", None]) -> None:
        self.model, self.index, self.reader = model, index, reader
        self.processor: Optional[Processor] = None
        self.pointer = ctypes.c_void_p()
        self.lock = threading.RLock()  # of the pointer
        self.finish = c.RUNNING
        self.prompt_tokens = 0
        self.top_count = 0
        self.scored = self.polled = False
        self.pieces: List[str] = []
        self.deltas: List[Dict[str, Any]] = []
        self.ids: List[int] = []
        self.weights: List[int] = []
        self.log_probabilities: List[float] = []
        self.top_ids: List[int] = []
        self.top_log_probabilities: List[float] = []

    @property
    def ended(self) -> bool:
        return self.finish != c.RUNNING

    def poll(self) -> List[Any]:
        """The new pieces: of text, or, of a chat's answer, OpenAI's deltas."""
        output = c.Output()
        with self.model._use():
            status = c.library.minimind_poll(self.pointer, ctypes.byref(output))
            if status != c.OK:
                failure = self.processor and self.processor.failure
                raise failure or c.exception_of(status, c.library.minimind_generation_error(self.pointer))
            piece = self._take(output)
        self.pieces.append(piece)
        if self.ended:
            self.release()
        if self.reader is None:
            return [piece] if piece else []
        deltas = self.reader.push(piece, self.ended)
        self.deltas += deltas
        return deltas

    def _take(self, output: c.Output) -> str:
        if not self.polled and output.notes:
            logger.warning("%s", output.notes.decode("utf-8", "replace"))
        self.polled = True
        self.finish, self.prompt_tokens = output.finish, output.prompt_tokens
        self.ids += output.ids[: output.id_count]
        self.weights += output.weights[: output.id_count]
        if output.log_probabilities:
            self.scored, self.top_count = True, output.top_count
            self.log_probabilities += output.log_probabilities[: output.id_count]
            self.top_ids += output.top_ids[: output.id_count * output.top_count]
            self.top_log_probabilities += output.top_log_probabilities[: output.id_count * output.top_count]
        return ctypes.string_at(output.text, output.text_size).decode() if output.text_size else ""

    def completion(self) -> Completion:
        tops = (len(self.ids), self.top_count)
        return Completion(
            text="".join(self.pieces),
            ids=np.array(self.ids, np.int32),
            finish_reason=c.FINISH_REASONS[self.finish],
            prompt_tokens=self.prompt_tokens,
            index=self.index,
            weights=np.array(self.weights, np.int64),
            log_probabilities=np.array(self.log_probabilities, np.float64) if self.scored else None,
            top_ids=np.array(self.top_ids, np.int32).reshape(tops) if self.scored else None,
            top_log_probabilities=np.array(self.top_log_probabilities, np.float64).reshape(tops) if self.scored else None,
            message=None if self.reader is None else _message_of(self.deltas),
        )

    def cancel(self) -> None:
        with self.lock:
            if self.pointer:
                c.library.minimind_cancel(self.pointer)

    def release(self) -> None:
        if self.model._process != os.getpid():
            return
        with self.lock:
            pointer, self.pointer = self.pointer, ctypes.c_void_p()
        if pointer:
            c.library.minimind_release(pointer)

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_finalizing():
            self.release()


class _Answer(c.Owner):
    """The reader of a chat's answer."""

    def __init__(self, prompt: str) -> None:
        self.pointer = ctypes.c_void_p()
        text, error = prompt.encode(), c.Error()
        status = c.library.minimind_answer_open(text, len(text), ctypes.byref(self.pointer), ctypes.byref(error))
        if status != c.OK:
            raise c.exception_of(status, error.message)

    def push(self, piece: str, last: bool) -> List[Dict[str, Any]]:
        text, deltas, size = piece.encode(), ctypes.c_char_p(), ctypes.c_size_t()
        status = c.library.minimind_answer_push(
            self.pointer, text, len(text), last, ctypes.byref(deltas), ctypes.byref(size)
        )
        if status != c.OK:
            raise c.exception_of(status, c.library.minimind_answer_error(self.pointer))
        read: List[Dict[str, Any]] = json.loads(deltas.value or b"[]")
        return read

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_finalizing():
            c.library.minimind_answer_close(self.pointer)


class _PlainAnswer:
    """The reader of an answer that conforms to a grammar, which has no thoughts and calls."""

    def push(self, piece: str, last: bool) -> List[Dict[str, Any]]:
        return [{"content": piece}] if piece else []


def reader_of_answer(prompt: str, constrained: bool) -> Union[_Answer, _PlainAnswer]:
    """For the answer to a rendered prompt. Raises ValueError if a constraint would be that of a thought."""
    if not constrained:
        return _Answer(prompt)
    if prompt.rstrip().endswith("<think>"):
        raise ValueError("the constraint is for the answer, but the prompt starts a thought; give thinking=False")
    return _PlainAnswer()


def _message_of(deltas: Iterable[Mapping[str, Any]]) -> Dict[str, Any]:
    """The message that OpenAI's deltas add up to."""
    texts: Dict[str, List[str]] = {"content": [], "reasoning_content": []}
    calls: List[Dict[str, Any]] = []
    for delta in deltas:
        for name, pieces in texts.items():
            pieces.append(delta.get(name, ""))
        calls += [{key: value for key, value in call.items() if key != "index"} for call in delta.get("tool_calls", ())]
    message: Dict[str, Any] = {"role": "assistant", "content": "".join(texts["content"])}
    if any(texts["reasoning_content"]):
        message["reasoning_content"] = "".join(texts["reasoning_content"])
    if calls:
        message["tool_calls"] = calls
    return message
