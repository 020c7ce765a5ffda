"""The tensors of a state dict, where they are in memory."""

from __future__ import annotations

import ctypes
from typing import Any, List, Mapping, Tuple

import numpy as np

from minimind_cpp import _library as c
from minimind_cpp._arguments import name_bytes

TYPES = {"float32": b"f32", "float16": b"f16", "bfloat16": b"bf16"}


def _type_of(name: str, tensor: Any) -> bytes:
    type_name = str(tensor.dtype).replace("torch.", "")
    if type_name not in TYPES:
        raise TypeError(f"{name} has values of type {type_name}, expected {', '.join(TYPES)}; convert it, as with .float()")
    return TYPES[type_name]


def _contiguous(name: str, tensor: Any) -> Tuple[Any, int]:
    """The tensor, row-major in memory of the processor, and where it starts."""
    if hasattr(tensor, "data_ptr"):
        if tensor.is_meta:
            raise ValueError(f"{name} is on PyTorch's device meta, which has no values, expected values; load them first")
        if str(tensor.layout) != "torch.strided":
            raise TypeError(f"{name} is of layout {tensor.layout}, expected a dense tensor; convert it with .to_dense()")
        tensor = tensor.detach().cpu().contiguous()
        return tensor, tensor.data_ptr()
    if not isinstance(tensor, np.ndarray):
        raise TypeError(f"{name} is of type {type(tensor).__name__}, expected a tensor of PyTorch or a numpy array")
    tensor = np.ascontiguousarray(tensor).reshape(tensor.shape)
    return tensor, tensor.ctypes.data


def merged_name(name: object) -> str:
    """The name in the model of one in a PEFT model whose adapter is merged."""
    if not isinstance(name, str):
        raise TypeError(f"a name of state_dict is of type {type(name).__name__}, expected str")
    if ".lora_" in name:
        raise ValueError(
            f"{name} is of a PEFT adapter beside the weights, expected weights that include it; call merge_adapter() first, "
            'and pass the tensors without "lora_" in their names'
        )
    prefix = "base_model.model."
    return name[len(prefix) :].replace(".base_layer.", ".") if name.startswith(prefix) else name


def tensors_of(state_dict: Mapping[str, Any]) -> Tuple[Any, List[Any]]:
    """The tensors for minimind_load_tensors, and what must live until it has returned."""
    if not isinstance(state_dict, Mapping):
        raise TypeError(f"state_dict is of type {type(state_dict).__name__}, expected a dict of names and tensors")
    owners: List[Any] = []
    tensors: List[c.Tensor] = []
    for given_name, given in state_dict.items():
        name = merged_name(given_name)
        name_of_tensor = name_bytes(name, "a name of state_dict")
        tensor, data = _contiguous(name, given)
        shape = (ctypes.c_size_t * len(tensor.shape))(*tensor.shape)
        type_of_values = _type_of(name, tensor)
        values = int(np.prod([int(size) for size in tensor.shape], dtype=np.int64))
        size_of_value = 4 if type_of_values == b"f32" else 2
        tensors.append(c.Tensor(name_of_tensor, type_of_values, shape, len(tensor.shape), data, values * size_of_value))
        owners.append((tensor, shape))
    return (c.Tensor * len(tensors))(*tensors), owners
