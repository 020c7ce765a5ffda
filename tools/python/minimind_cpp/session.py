"""The tokens of one text with their keys and values."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import TYPE_CHECKING, Callable, List

import numpy as np
import numpy.typing as npt

from minimind_cpp import _library as c
from minimind_cpp._arguments import Ids, count, id_array, path_bytes, pointer

if TYPE_CHECKING:
    from minimind_cpp.model import Model, Path


class Session(c.Owner):
    """A text whose keys and values stay between calls. From `Model.session`; one call at a time.

    `Model.generate` and `Model.stream` with `session=` continue it: of the prompt, what the session has is not computed again.
    """

    def __init__(self, model: "Model", capacity: int) -> None:
        self._model = model
        self._pointer = ctypes.c_void_p()
        with model._use() as handle:
            model._check(
                c.library.minimind_session_open(handle, count(capacity, "capacity"), ctypes.byref(self._pointer))
            )

    @property
    def ids(self) -> List[int]:
        """The tokens that the session has."""
        size = ctypes.c_size_t()
        ids = np.empty(self._model.context_length, np.int32)
        self._call(c.library.minimind_session_ids, pointer(ids, ctypes.c_int32), len(ids), ctypes.byref(size))
        found: List[int] = ids[: size.value].tolist()
        return found

    def run(self, ids: Ids, rows: int = 1) -> npt.NDArray[np.float32]:
        """Appends ids, and gives the logits after the last `rows` of them, float32 [rows, vocab_size]."""
        array = id_array(ids, "ids")
        logits = np.empty((count(rows, "rows"), self._model.vocab_size), np.float32)
        self._call(
            c.library.minimind_session_run, pointer(array, ctypes.c_int32), len(array), rows,
            pointer(logits, ctypes.c_float), logits.size,
        )  # fmt: skip
        return logits

    def rewind(self, size: int) -> None:
        """Keeps the first `size` tokens."""
        self._call(c.library.minimind_session_rewind, count(size, "size"))

    def save(self, path: "Path") -> None:
        """Writes a file that `load` and `minimind chat --session` read. The model must have been opened with session_files."""
        self._call(c.library.minimind_session_save, path_bytes(path, "path"))

    def load(self, path: "Path") -> None:
        """Reads a file of the same weights."""
        self._call(c.library.minimind_session_load, path_bytes(path, "path"))

    def _call(self, function: Callable[..., int], *arguments: object) -> None:
        with self._model._use():
            status = function(self._pointer, *arguments)
            if status != c.OK:
                raise c.exception_of(status, c.library.minimind_session_error(self._pointer))

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if getattr(self, "_pointer", None) and not is_finalizing() and self._model._process == os.getpid():
            c.library.minimind_session_close(self._pointer)
