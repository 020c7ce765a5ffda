"""Which tokens may follow in a text of a grammar, for programs that compute logits themselves. No model is needed.

    from minimind_cpp.masks import Grammar, LogitsProcessor, Vocabulary

    vocabulary = Vocabulary.of(tokenizer)                # of transformers
    grammar = Grammar(json_schema={"type": "object", "properties": {"age": {"type": "integer"}}})
    model.generate(**inputs, max_new_tokens=64, logits_processor=[LogitsProcessor(grammar, vocabulary, 64)])
"""

from __future__ import annotations

import ctypes
import functools
import json
import sys
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

import numpy as np
import numpy.typing as npt

from minimind_cpp import _library as c
from minimind_cpp._arguments import Ids, count, elements, id_array, pointer
from minimind_cpp.sampling import SamplingParams

UNLIMITED = ctypes.c_size_t(-1).value


class _Handle(c.Owner):
    """A pointer of the library, which `close` frees."""

    def __init__(self, opened: Callable[[Any, Any], int], close: Callable[[Any], None]) -> None:
        self._pointer, self._close = ctypes.c_void_p(), close
        error = c.Error()
        status = opened(ctypes.byref(self._pointer), ctypes.byref(error))
        if status != c.OK:
            raise c.exception_of(status, error.message)

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if getattr(self, "_pointer", None) and not is_finalizing():
            self._close(self._pointer)


class Vocabulary(_Handle):
    """The bytes of each token, by id, and the tokens that end a text. b"" for control tokens, which are never allowed."""

    def __init__(self, tokens: Sequence[bytes], end_tokens: Ids) -> None:
        texts = list(elements(tokens, "tokens", "a list of bytes"))
        for i, text in enumerate(texts):
            if not isinstance(text, bytes):
                raise TypeError(f"tokens[{i}] is of type {type(text).__name__}, expected bytes")
        sizes = np.fromiter(map(len, texts), np.uintp, len(texts))
        ends = id_array(end_tokens, "end_tokens")
        self.size, self.end_tokens = len(texts), frozenset(ends.tolist())
        super().__init__(
            lambda handle, error: c.library.minimind_vocabulary_open(
                (ctypes.c_char_p * len(texts))(*texts), pointer(sizes, ctypes.c_size_t), len(texts),
                pointer(ends, ctypes.c_int32), len(ends), handle, error,
            ),
            c.library.minimind_vocabulary_close,
        )  # fmt: skip

    @classmethod
    def of(cls, tokenizer: Any, end_tokens: Optional[Ids] = None) -> "Vocabulary":
        """That of a tokenizer of transformers (a fast one), whose eos_token ends texts unless others are given, or of tokenizers."""
        backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
        if not hasattr(backend, "to_str"):
            raise TypeError(f"tokenizer is of type {type(tokenizer).__name__}, expected a fast tokenizer of transformers")
        if end_tokens is None:
            eos = getattr(tokenizer, "eos_token_id", None)
            if eos is None:
                raise ValueError("the tokenizer states no eos_token, expected end_tokens")
            end_tokens = [eos]
        return cls(_bytes_of_tokens(json.loads(backend.to_str())), end_tokens)


def _bytes_of_tokens(file: Mapping[str, Any]) -> List[bytes]:
    vocabulary = file["model"].get("vocab")
    decoder = file.get("decoder") or {}
    kinds = {part.get("type") for part in [decoder, *decoder.get("decoders", [])]}
    if not isinstance(vocabulary, dict) or not kinds & {"ByteLevel", "ByteFallback"}:
        raise ValueError("the tokenizer has neither a ByteLevel nor a ByteFallback decoder, expected BPE with one of them")
    bytes_of = _byte_level if "ByteLevel" in kinds else _byte_fallback
    texts: Dict[int, bytes] = {id: bytes_of(token) for token, id in vocabulary.items()}
    for token in file["added_tokens"]:
        texts[token["id"]] = b"" if token["special"] else token["content"].encode()
    return [texts.get(id, b"") for id in range(max(texts) + 1)]


_PLAIN = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHERS = [byte for byte in range(0x100) if byte not in _PLAIN]
_BYTES = {**{chr(byte): byte for byte in _PLAIN}, **{chr(0x100 + i): byte for i, byte in enumerate(_OTHERS)}}


def _byte_level(token: str) -> bytes:
    return bytes(_BYTES[character] for character in token) if all(map(_BYTES.__contains__, token)) else b""


def _byte_fallback(token: str) -> bytes:
    is_byte = len(token) == 6 and token.startswith("<0x") and token.endswith(">")
    return bytes([int(token[3:5], 16)]) if is_byte else token.replace("\u2581", " ").encode()


class Grammar(_Handle):
    """One of grammar (GBNF), regex, choice and json_schema, as in SamplingParams, compiled. Any number of threads may use it.

    Objects of a json_schema may have properties that it does not name, unless it forbids them; `closed`: never.
    """

    def __init__(
        self,
        *,
        json_schema: Union[str, Mapping[str, Any], type, None] = None,
        regex: Optional[str] = None,
        choice: Optional[Sequence[str]] = None,
        grammar: Optional[str] = None,
        closed: bool = False,
    ) -> None:
        params = SamplingParams(json_schema=json_schema, regex=regex, choice=choice, grammar=grammar)
        request = params._request(0)
        request.open_schema = not closed
        super().__init__(
            lambda handle, error: c.library.minimind_grammar_compile(ctypes.byref(request), handle, error),
            c.library.minimind_grammar_close,
        )

    @property
    def notes(self) -> str:
        """What of the schema is ignored, a line each."""
        written: bytes = c.library.minimind_grammar_notes(self._pointer)
        return written.decode()


class Matcher(_Handle):
    """A text of a grammar, at first empty. One thread at a time.

    An error means that the grammar is too ambiguous at this point of the text; after `rollback` it goes on.
    """

    def __init__(self, grammar: Grammar, vocabulary: Vocabulary) -> None:
        self._vocabulary, self._size = vocabulary, vocabulary.size
        self._bits = np.empty((vocabulary.size + 31) // 32, np.uint32)
        self._token, self._taken = ctypes.c_int32(), ctypes.c_size_t()
        super().__init__(
            lambda handle, error: c.library.minimind_matcher_open(grammar._pointer, vocabulary._pointer, handle, error),
            c.library.minimind_matcher_close,
        )
        # Functions without argtypes take arguments of ctypes as they are, which saves a third of a call for each token.
        mask, take = c.library["minimind_matcher_mask"], c.library["minimind_matcher_accept"]
        self._of_mask = ctypes.c_void_p(self._bits.ctypes.data), ctypes.c_size_t(len(self._bits))
        self._mask = functools.partial(mask, self._pointer, ctypes.c_size_t(UNLIMITED), *self._of_mask)
        self._take = functools.partial(
            take, self._pointer, ctypes.byref(self._token), ctypes.c_size_t(1), ctypes.byref(self._taken)
        )

    def bits(self, max_tokens: int = UNLIMITED) -> npt.NDArray[np.uint32]:
        """The tokens that may follow, bit id % 32 of the element id // 32. Valid until the next call.

        At most max_tokens may be added, end tokens not counted: if the text can be complete by then, only tokens that let it are
        allowed.
        """
        if max_tokens == UNLIMITED:
            status = self._mask()
        else:
            most = count(max_tokens, "max_tokens", most=UNLIMITED)
            status = c.library.minimind_matcher_mask(self._pointer, most, *self._of_mask)
        if status:
            self._fail(status)
        return self._bits

    def mask(self, max_tokens: int = UNLIMITED) -> npt.NDArray[np.bool_]:
        """The same as an array of bool, [vocabulary.size], that stays."""
        bits = np.unpackbits(self.bits(max_tokens).astype("<u4").view(np.uint8), bitorder="little")
        return bits[: self._vocabulary.size].view(np.bool_)

    def accept(self, ids: Union[int, Ids]) -> int:
        """Adds a token, or tokens up to the first that may not follow, and returns how many."""
        if isinstance(ids, int) and 0 <= ids < self._size:
            self._token.value = ids
            status = self._take()
        else:
            tokens = id_array([ids] if isinstance(ids, int) else ids, "ids")
            of_tokens = pointer(tokens, ctypes.c_int32), len(tokens), ctypes.byref(self._taken)
            status = c.library.minimind_matcher_accept(self._pointer, *of_tokens)
        if status:
            self._fail(status)
        return self._taken.value

    def rollback(self, tokens: int) -> None:
        """Removes the last tokens."""
        self._call(c.library.minimind_matcher_rollback, count(tokens, "tokens"))

    @property
    def tokens_to_end(self) -> int:
        """How many tokens complete the text, at most."""
        return self._end()[0]

    @property
    def may_end(self) -> bool:
        return self._end()[1]

    def _end(self) -> "tuple[int, bool]":
        tokens, may_end = ctypes.c_uint64(), ctypes.c_int()
        self._call(c.library.minimind_matcher_end, ctypes.byref(tokens), ctypes.byref(may_end))
        return tokens.value, bool(may_end.value)

    def _call(self, function: Callable[..., int], *arguments: object) -> None:
        status = function(self._pointer, *arguments)
        if status != c.OK:
            self._fail(status)

    def _fail(self, status: int) -> None:
        raise c.exception_of(status, c.library.minimind_matcher_error(self._pointer))


class LogitsProcessor:
    """For generate() of transformers: each row of the batch becomes a text of the grammar, after the prompt.

    `max_tokens` is generate's max_new_tokens: texts end in time. Not for beam search, where rows change places. One call of
    generate() only.
    """

    def __init__(self, grammar: Grammar, vocabulary: Vocabulary, max_tokens: Optional[int] = None) -> None:
        self._grammar, self._vocabulary = grammar, vocabulary
        self._left = UNLIMITED if max_tokens is None else count(max_tokens, "max_tokens", 1)
        self._rows: List[Optional[Matcher]] = []

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        if not self._rows:
            self._rows = [Matcher(self._grammar, self._vocabulary) for _ in range(len(input_ids))]
        else:
            self._left = self._left if self._left == UNLIMITED else max(0, self._left - 1)
            self._rows = [self._after(row, token) for row, token in zip(self._rows, input_ids[:, -1].tolist())]
        allowed = np.zeros(tuple(scores.shape), np.bool_)
        for i, row in enumerate(self._rows):
            allowed[i, : self._vocabulary.size] = True if row is None else row.mask(self._left)
        return scores.masked_fill(~scores.new_tensor(allowed, dtype=bool), float("-inf"))

    def _after(self, row: Optional[Matcher], token: int) -> Optional[Matcher]:
        """The row after the token, None if it has ended: what follows is padding."""
        if row is not None and not row.accept(token):
            raise ValueError(f"token {token} may not follow in its row, expected one call of generate() without beams")
        return None if token in self._vocabulary.end_tokens else row
