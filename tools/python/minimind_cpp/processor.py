"""A function of Python that changes the logits from which tokens are sampled."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any, Callable, Optional

import numpy as np
import numpy.typing as npt

from minimind_cpp import _library as c

if TYPE_CHECKING:
    from minimind_cpp.model import Model


calling = threading.local()  # calling.model: a reference to that whose step calls a function on this thread


class Processor:
    """The function of one text. `callback` is it for the library, `failure` what it raised."""

    def __init__(self, function: Callable[..., npt.NDArray[np.float32]], model: "Model") -> None:
        self._function = function
        self._model = weakref.ref(model)  # which must not live as long as the callback, a cycle
        self.callback = c.PROCESS(self._call)
        self.failure: Optional[BaseException] = None

    def _call(self, _: Any, ids: Any, size: int, logits: Any, vocab_size: int) -> int:
        before = getattr(calling, "model", None)
        try:
            calling.model = self._model
            values = np.ctypeslib.as_array(logits, (vocab_size,))
            returned = self._function(np.ctypeslib.as_array(ids, (size,)).copy(), values.copy())
            if np.shape(returned) != values.shape:
                raise ValueError(f"logits_processor returned shape {np.shape(returned)}, expected {values.shape}")
            values[:] = returned
            return 1
        except BaseException as error:  # also of Ctrl-C: it must not cross the library
            self.failure = error
            return 0
        finally:
            calling.model = before
