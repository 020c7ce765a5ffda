"""Records blocks quantised by the `gguf` package and llama.cpp, and dequantised by the package.

    python tests/golden_quantize/generate.py        (pip install gguf==0.19.0 llama-cpp-python==0.3.36 numpy)

Writes five files:
blocks.jsonl, quantised: {name, values, q8_0, q4_0, q4_1, q5_0, q5_1, iq4_nl}, 32 values and their blocks as hex;
k_blocks.jsonl, quantised: {name, values, q4_k, q5_k, q6_k}, 256 values and their blocks as hex;
many_quantised.jsonl: {type, sha256} of many_values as blocks. The test generates the same values.
stored.jsonl, dequantised: {type, blocks, values}, with the float32 values as hex;
many.jsonl: {type, sha256} of the float32 values of enough blocks to use every vector of the code books of the IQ types. NaN
counts as 0, because NumPy does not keep its bits. The test generates the same bytes.

The package cannot write iq4_nl: its records follow the description in weights/tensor/choose_codes.cpp with NumPy. Nor
can it write the k-quants: their records are llama.cpp's, without an importance matrix. On x86-64 its quantisers are
compiled without fused products and sums, which would change them.
"""

import ctypes
import hashlib
import json
import pathlib

import llama_cpp
import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import IQ4_NL, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, dequantize

HERE = pathlib.Path(__file__).parent

QUANTISERS = {"q8_0": Q8_0, "q4_0": Q4_0, "q4_1": Q4_1, "q5_0": Q5_0, "q5_1": Q5_1}
K_QUANTS = ("q4_k", "q5_k", "q6_k")
GGML = ctypes.CDLL(str(next(pathlib.Path(llama_cpp.__file__).parent.glob("lib/libggml-base.*"))))

CODES = np.array(IQ4_NL.kvalues)
TRIED_EXTREMES = (-136, -127, -118, -109, 96, 104, 112, 120)

# Offsets of the binary16 scales in a block of each type.
SCALES = {"Q8_0": (0,), "Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "IQ4_NL": (0,)}
SCALES |= {"Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,)}
SCALES |= {"Q2_K": (80, 82), "Q3_K": (108,), "TQ1_0": (52,), "TQ2_0": (64,)}
SCALES |= {kind: (0,) for kind in ("IQ4_XS", "IQ3_S", "IQ3_XXS", "IQ2_S", "IQ2_XS", "IQ2_XXS", "IQ1_S")}
# The scales of iq1_m are spread over four nibbles; those of mxfp4 and nvfp4 have 8 bits.
SCALES |= {"IQ1_M": (), "MXFP4": (), "NVFP4": ()}
BYTE_SCALES = (0x00, 0x01, 0x02, 0x7F, 0x80, 0xFE, 0xFF, 0x38)
# One, a negative value, the smallest and the largest subnormal, both zeros, the largest; None: random.
SCALE_BITS = (0x3C00, 0xB5EC, 0x0001, 0x83FF, 0x0000, 0x8000, 0x7BFF, None)


def ties(largest, last):
    """Returns values that are halfway between two integers if the scale is 1."""
    halves = [k + 0.5 for k in range(-int(largest), int(largest))]
    return ([last] + halves + [0.0] * 32)[:32]


def q4_half(sign):
    """Returns values with the largest number below 0.5, for a scale of 1: plus 8.5 it is 9 in float32, but not in double."""
    below = float(np.nextafter(np.float32(0.5), np.float32(0)))
    return [-8.0, sign * below, below - 1, 2 - below] + [0.0] * 28


def blocks():
    random = np.random.default_rng(1)
    normal = random.standard_normal((6, 32)).astype(np.float32)
    for i, block in enumerate(normal):
        yield f"normal {i}", block
    yield "weights", normal[0] * np.float32(0.02)
    yield "zero", np.zeros(32)
    yield "negative zero", np.full(32, -0.0)
    yield "ties of q8_0", ties(13, 127.0)
    yield "ties of q8_0, negative", ties(13, -127.0)
    yield "ties of q4_0", ties(8, -8.0)
    yield "ties of q4_0, positive", ties(8, 8.0)
    yield "just below a half", q4_half(1)
    yield "just above minus a half", q4_half(-1)
    yield "extremes of both signs, positive first", [3.0, -3.0, 1.0, -1.0] * 8
    yield "extremes of both signs, negative first", [-3.0, 3.0, -1.0, 1.0] * 8
    yield "one number", [0.0] * 31 + [-0.7]
    yield "equal numbers", [0.3] * 32
    yield "subnormal scale", normal[1] * np.float32(2.0**-16)
    yield "scale below binary16", normal[2] * np.float32(2.0**-40)
    yield "largest scale", normal[3] / abs(normal[3]).max() * np.float32(500000)


def inverse_of(scale):
    with np.errstate(divide="ignore"):
        inverse = np.float32(1) / scale
    return inverse if np.isfinite(inverse) else np.float32(0)


def nearest_quants(doubled):
    """Returns the indices of the codes nearest to half of each integer."""
    return (doubled[:, None] >= CODES[1:] + CODES[:-1]).sum(1)


def quantize_iq4_nl(block):
    one = np.float32(32767)
    extreme = block[np.abs(block).argmax()]
    numbers = np.trunc(block * inverse_of(extreme / one)).astype(np.int64)
    best_gain, best_scale = 0.0, 0.0
    for tried in TRIED_EXTREMES:
        codes = CODES[nearest_quants((numbers * 4 * tried) >> 16)]
        products = int((numbers * codes).sum())
        scale = products / int((codes**2).sum())
        if scale * products > best_gain:
            best_gain, best_scale = scale * products, scale
    scale = np.float32(best_scale * float(extreme) / float(one)).astype(np.float16)
    doubled = np.float32(2) * inverse_of(scale.astype(np.float32)) * block
    quants = nearest_quants(np.floor(doubled + np.float32(4096)).astype(np.int64) - 4096)
    return scale.tobytes() + (quants[:16] | quants[16:] << 4).astype(np.uint8).tobytes()


def quantize_k(kind, values):
    """Returns llama.cpp's blocks of the values."""
    number = GGMLQuantizationType[kind.upper()]
    size, stored = GGML_QUANT_SIZES[number]
    values = np.ascontiguousarray(values, np.float32).reshape(-1)
    out = np.zeros(values.size // size * stored, np.uint8)
    GGML.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p] + [ctypes.c_int64] * 3 + [ctypes.c_void_p]
    GGML.ggml_quantize_chunk.restype = ctypes.c_size_t
    assert GGML.ggml_quantize_chunk(number, values.ctypes.data, out.ctypes.data, 0, 1, values.size, None) == out.size
    return out.tobytes()


def k_blocks():
    """Yields 256 values each, such that parts of a block differ."""
    random = np.random.default_rng(3)
    normal = np.round(random.standard_normal(256) * 64) / 64
    parts = np.arange(256) // 32
    yield "weights", normal / 32
    yield "parts of different size", normal * 2.0**-parts
    yield "zero", np.zeros(256)
    yield "negative zero", np.full(256, -0.0)
    yield "some parts zero", normal * (parts % 2)
    yield "one huge value", np.where(np.arange(256) == 77, -20000.0, normal)
    yield "one value", np.where(np.arange(256) == 255, 0.75, 0)
    yield "equal values", np.full(256, 0.25)
    yield "equal negative values", np.full(256, -0.25)
    yield "only positive", np.abs(normal) + 1
    yield "only negative", -np.abs(normal) - 1
    yield "ties", np.arange(256) % 31 / 2 - 7.5
    yield "extremes of both signs", np.where(np.arange(256) % 2, 3.0, -3.0)
    yield "largest scales", normal / np.abs(normal).max() * 1e6
    yield "subnormal scales", normal * 2.0**-20
    yield "scales below binary16", normal * 2.0**-40
    yield "below what q6_k counts as zero", normal * 2.0**-52
    yield "subnormal values", normal * 2.0**-130
    yield "subnormal values of one part", np.where(parts == 3, normal * 2.0**-135, normal)


def stored_blocks(kind, random):
    """Returns random blocks, one for each scale: no infinities and no NaN, whose bits NumPy does not keep."""
    size = GGML_QUANT_SIZES[GGMLQuantizationType[kind]][1]
    stored = random.integers(0, 256, (len(SCALE_BITS), size), np.uint8)
    for block, bits, byte in zip(stored, SCALE_BITS, BYTE_SCALES):
        if kind == "IQ1_M":
            nibbles = [(bits or 0x2E66) >> shift & 0x0F for shift in (0, 4, 8, 12)]
            block[49:56:2] = block[49:56:2] & 0x0F | np.uint8([16 * nibble for nibble in nibbles])
        if kind in ("MXFP4", "NVFP4"):
            block[0] = byte
        for at in SCALES[kind]:
            drawn = random.integers(0, 0x7C00) | random.integers(0, 2) << 15
            block[at : at + 2] = np.frombuffer(np.uint16(drawn if bits is None else bits).tobytes(), np.uint8)
    return stored


def many_bytes(count):
    state, drawn = 1, bytearray()
    for _ in range(count):
        state = (state * 1664525 + 1013904223) % 2**32
        drawn.append(state >> 24)
    return np.frombuffer(bytes(drawn), np.uint8)


def many_values(blocks, size):
    """Returns blocks of about normal, sparse, positive and outlying values, whole numbers times powers of two."""
    drawn = many_bytes(5 * blocks * size).reshape(blocks, size, 5).astype(np.int64)
    numbers = drawn[:, :, :4].sum(axis=2) - 510
    kinds = np.arange(blocks) % 4
    numbers[kinds == 1] *= drawn[kinds == 1][:, :, 4] < 64
    numbers[kinds == 2] += 510
    numbers[kinds == 3, 5] *= 64
    exponents = np.arange(blocks) // 4 % 40 - 37
    return np.ldexp(numbers.astype(np.float32), exponents[:, None].astype(np.int32)).astype(np.float32)


def main():
    with open(HERE / "blocks.jsonl", "w") as file:
        for name, values in blocks():
            block = np.asarray(values, np.float32).reshape(1, 32)
            line = {"name": name, "values": [float(value) for value in block[0]]}
            for kind, quantiser in QUANTISERS.items():
                line[kind] = quantiser.quantize_blocks(block).tobytes().hex()
            line["iq4_nl"] = quantize_iq4_nl(block[0]).hex()
            file.write(json.dumps(line) + "\n")
    with open(HERE / "k_blocks.jsonl", "w") as file:
        for name, values in k_blocks():
            values = np.asarray(values, np.float32)
            line = {"name": name, "values": [float(value) for value in values]}
            line |= {kind: quantize_k(kind, values).hex() for kind in K_QUANTS}
            file.write(json.dumps(line) + "\n")
    with open(HERE / "many_quantised.jsonl", "w") as file:
        for kind, quantiser in QUANTISERS.items():
            stored = quantiser.quantize_blocks(many_values(2000, 32)).tobytes()
            file.write(json.dumps({"type": kind, "sha256": hashlib.sha256(stored).hexdigest()}) + "\n")
        for kind in K_QUANTS:
            stored = quantize_k(kind, many_values(1000, 256))
            file.write(json.dumps({"type": kind, "sha256": hashlib.sha256(stored).hexdigest()}) + "\n")
    random = np.random.default_rng(2)
    with open(HERE / "stored.jsonl", "w") as file:
        for kind in SCALES:
            stored = stored_blocks(kind, random)
            values = dequantize(stored, GGMLQuantizationType[kind])
            line = {"type": kind.lower(), "blocks": stored.tobytes().hex(), "values": values.tobytes().hex()}
            file.write(json.dumps(line) + "\n")
    with open(HERE / "many.jsonl", "w") as file:
        for kind in SCALES:
            size = GGML_QUANT_SIZES[GGMLQuantizationType[kind]][1]
            values = dequantize(many_bytes(1000 * size).reshape(1000, size), GGMLQuantizationType[kind])
            values = np.where(np.isnan(values), np.float32(0), values)
            line = {"type": kind.lower(), "sha256": hashlib.sha256(values.tobytes()).hexdigest()}
            file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
