"""Writes small GGUF files with the gguf package, to test reading and writing against it.

    python tests/golden_gguf/write.py        (pip install gguf==0.19.0 numpy)

metadata.gguf: every type of metadata, alone and in arrays; tensors of 1 to 4 dimensions that need padding.
types.gguf: a tensor [2, 32], [2, 64] or [2, 256] of each supported type, named after the type in ggml. Types that the package
can quantize contain the quantized values 0, 1, 2, ...; the others contain the bytes 0, 1, 2, ... modulo 251.
"""

import pathlib

import numpy as np
from gguf import GGMLQuantizationType as TensorType
from gguf import GGUFValueType as ValueType
from gguf import GGUFWriter, quants
from gguf.constants import GGML_QUANT_SIZES

HERE = pathlib.Path(__file__).parent

INTEGERS = {
    "u8": (ValueType.UINT8, 0, 2**8 - 1),
    "i8": (ValueType.INT8, -(2**7), 2**7 - 1),
    "u16": (ValueType.UINT16, 0, 2**16 - 1),
    "i16": (ValueType.INT16, -(2**15), 2**15 - 1),
    "u32": (ValueType.UINT32, 0, 2**32 - 1),
    "i32": (ValueType.INT32, -(2**31), 2**31 - 1),
    "u64": (ValueType.UINT64, 0, 2**64 - 1),
    "i64": (ValueType.INT64, -(2**63), 2**63 - 1),
}

QUANTIZED = ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"]
RAW = ["F64", "I8", "I16", "I32", "I64", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "Q2_K", "Q3_K", "IQ4_XS", "IQ3_S", "IQ3_XXS"]
RAW += ["IQ2_S", "IQ2_XS", "IQ2_XXS", "IQ1_M", "IQ1_S", "TQ1_0", "TQ2_0", "MXFP4", "NVFP4"]


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_array(writer, key, values, element_type):
    writer.add_key_value(key, values, ValueType.ARRAY, sub_type=element_type)


def write_metadata():
    writer = GGUFWriter(HERE / "metadata.gguf", "llama")
    for name, (value_type, lowest, highest) in INTEGERS.items():
        writer.add_key_value(f"test.{name}", highest, value_type)
        add_array(writer, f"test.{name}s", [lowest, 1, highest], value_type)
    writer.add_float32("test.f32", 1e-6)
    add_array(writer, "test.f32s", [0.5, -0.0, float("inf")], ValueType.FLOAT32)
    writer.add_float64("test.f64", 0.1)
    add_array(writer, "test.f64s", [0.1, -2.5], ValueType.FLOAT64)
    writer.add_bool("test.yes", True)
    writer.add_bool("test.no", False)
    add_array(writer, "test.bools", [True, False, True], ValueType.BOOL)
    writer.add_string("test.string", "静夜思\n")
    add_array(writer, "test.strings", ["a", "", "bc"], ValueType.STRING)
    add_array(writer, "test.bytes_that_are_no_text", [b"\xff\x00", b"\n"], ValueType.STRING)
    writer.add_tensor("one", np.arange(5, dtype=np.float16))
    writer.add_tensor("two", np.arange(6, dtype=np.float32).reshape(2, 3))
    writer.add_tensor("three", np.arange(24, dtype=np.int8).reshape(2, 3, 4))
    writer.add_tensor("four", np.arange(24, dtype=np.int16).reshape(1, 4, 3, 2))
    finish(writer)


def write_types():
    writer = GGUFWriter(HERE / "types.gguf", "llama")
    for name in QUANTIZED + RAW:
        tensor_type = TensorType[name]
        block, size = GGML_QUANT_SIZES[tensor_type]
        columns = max(block, 32)
        if name in QUANTIZED:
            values = np.arange(2 * columns, dtype=np.float32).reshape(2, columns)
            tensor = quants.quantize(values, tensor_type)
        else:
            count = 2 * columns // block * size
            tensor = (np.arange(count) % 251).astype(np.uint8).reshape(2, count // 2)
        writer.add_tensor(name, tensor.view(np.uint8), raw_dtype=tensor_type)
    finish(writer)


if __name__ == "__main__":
    write_metadata()
    write_types()
