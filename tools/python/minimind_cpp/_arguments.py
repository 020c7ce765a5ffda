"""Python's values as those of the library. A wrong type is a TypeError, a wrong value a ValueError."""

from __future__ import annotations

import ctypes
import json
import operator
import os
from typing import Any, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt

from minimind_cpp import _library as c

Ids = Union[Sequence[int], npt.NDArray[np.integer]]


def text_bytes(value: object, name: str) -> bytes:
    if not isinstance(value, str):
        raise TypeError(f"{name} is of type {type(value).__name__}, expected str")
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{name} has half of a surrogate pair at character {error.start}, expected Unicode text") from None


def name_bytes(value: object, name: str) -> bytes:
    """Of text that ends at a NUL."""
    text = text_bytes(value, name)
    if b"\0" in text:
        raise ValueError(f"{name} has a NUL character, expected text without")
    return text


def elements(values: Any, name: str, expected: str) -> Iterable[Any]:
    try:
        found: Iterable[Any] = iter(values)
        return found
    except TypeError:
        raise TypeError(f"{name} is of type {type(values).__name__}, expected {expected}") from None


def path_bytes(value: object, name: str) -> bytes:
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{name} is of type {type(value).__name__}, expected str or a path")
    path = os.fsencode(value)
    if b"\0" in path:
        raise ValueError(f"{name} has a NUL character, expected the path of a file")
    return path


def count(value: object, name: str, least: int = 0, most: int = 2**63 - 1) -> int:
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name} is of type {type(value).__name__}, expected int") from None
    if not least <= number <= most:
        raise ValueError(f"{name} is {number}, expected {least} to {most}")
    return number


def number(value: object, name: str) -> float:
    try:
        if isinstance(value, str):
            raise TypeError
        return float(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name} is of type {type(value).__name__}, expected float") from None


def id_array(ids: Ids, name: str) -> npt.NDArray[np.int32]:
    """int32 [T], contiguous."""
    try:
        array = np.asarray(ids)
    except ValueError:
        raise ValueError(f"{name} has lists of different lengths, expected one list of token ids") from None
    if array.ndim == 0:
        raise TypeError(f"{name} is of type {type(ids).__name__}, expected a list or array of token ids")
    if array.size == 0 and array.ndim == 1:
        return np.empty(0, np.int32)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} has elements of type {array.dtype}, expected token ids, which are int")
    if array.ndim != 1:
        raise ValueError(f"{name} is of shape {array.shape}, expected one dimension")
    limits = np.iinfo(np.int32)
    if array.min() < limits.min or array.max() > limits.max:
        raise ValueError(f"{name} has ids beyond {limits.max}, expected ids of the vocabulary")
    return np.ascontiguousarray(array, np.int32)


def pointer(array: npt.NDArray[Any], element: Any) -> Any:
    return array.ctypes.data_as(ctypes.POINTER(element))


def json_bytes(value: object, name: str) -> bytes:
    try:
        return text_bytes(json.dumps(value, ensure_ascii=False), name)
    except TypeError as error:
        raise TypeError(f"{name} cannot be written as JSON: {error}") from None


def check_messages(messages: object) -> None:
    if not isinstance(messages, (list, tuple)):
        raise TypeError(f"messages is of type {type(messages).__name__}, expected a list of dicts")
    for i, message in enumerate(messages):
        if not isinstance(message, Mapping):
            raise TypeError(f"messages[{i}] is of type {type(message).__name__}, expected a dict")


def strings(values: Sequence[bytes]) -> Any:
    return (ctypes.c_char_p * len(values))(*values)
