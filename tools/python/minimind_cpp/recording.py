"""The values of points on a text's way through a model."""

from __future__ import annotations

import ctypes
import sys
from typing import Any, Callable, Dict, Tuple

import numpy as np
import numpy.typing as npt

from minimind_cpp import _library as c


class Recording(c.Owner):
    """The memory that the arrays of a trace have in common."""

    def __init__(self) -> None:
        self._pointer = ctypes.c_void_p()
        self._size = ctypes.c_size_t()

    def outputs(self) -> Tuple[Any, Any]:
        """Where minimind_trace writes."""
        return ctypes.byref(self._pointer), ctypes.byref(self._size)

    def arrays(self) -> Dict[str, npt.NDArray[np.float32]]:
        return dict(self._array(index) for index in range(self._size.value))

    def _array(self, index: int) -> Tuple[str, npt.NDArray[np.float32]]:
        point = c.Point()
        status = c.library.minimind_recording_point(self._pointer, index, ctypes.byref(point))
        if status != c.OK:
            raise c.exception_of(status, c.library.minimind_recording_error(self._pointer))
        shape = point.shape[: point.rank]
        if 0 in shape:  # an expert that no token chose
            return point.name.decode(), np.empty(shape, np.float32)
        memory = (ctypes.c_float * int(np.prod(shape))).from_address(point.values)
        memory.owner = self  # type: ignore[attr-defined]
        return point.name.decode(), np.frombuffer(memoryview(memory).cast("B"), np.float32).reshape(shape)

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_finalizing():
            c.library.minimind_recording_close(self._pointer)
