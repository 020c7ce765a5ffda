"""A function of Python that changes the logits from which tokens are sampled."""

from __future__ import annotations

import ctypes
from typing import Any, Callable, Optional

import numpy as np
import numpy.typing as npt

from minimind_cpp import _library as c


class Processor:
    """The function of one text. `callback` is it for the library, `failure` what it raised."""

    def __init__(self, function: Callable[..., npt.NDArray[np.float32]]) -> None:
        self._function = function
        self.callback = c.PROCESS(self._call)
        self.failure: Optional[BaseException] = None

    def _call(self, _: Any, ids: Any, size: int, logits: Any, vocab_size: int) -> int:
        try:
            values = np.ctypeslib.as_array(logits, (vocab_size,))
            returned = self._function(np.ctypeslib.as_array(ids, (size,)).copy(), values.copy())
            if np.shape(returned) != values.shape:
                raise ValueError(f"logits_processor returned shape {np.shape(returned)}, expected {values.shape}")
            values[:] = returned
            return 1
        except BaseException as error:  # also of Ctrl-C: it must not cross the library
            self.failure = error
            return 0
