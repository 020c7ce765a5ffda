"""Records what the reference quantiser makes of some blocks of 32 numbers.

    python tests/golden_quantize/generate.py        (pip install gguf==0.19.0 numpy)

Writes blocks.jsonl: {name, values, q8_0, q4_0}, the last two as the bytes of the block in hex: the binary16 scale, then
32 signed bytes, or 16 bytes with number i in the low half of byte i and number i + 16 in the high half.
"""

import json
import pathlib

import numpy as np
from gguf.quants import Q4_0, Q8_0

HERE = pathlib.Path(__file__).parent


def ties(largest, last):
    """Where the scale is 1, these lie halfway between two integers."""
    halves = [k + 0.5 for k in range(-int(largest), int(largest))]
    return ([last] + halves + [0.0] * 32)[:32]


def q4_half(sign):
    """With a scale of 1, the largest number below a half: 8.5 more than it is 9 in float32, but not in double."""
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


def main():
    with open(HERE / "blocks.jsonl", "w") as file:
        for name, values in blocks():
            block = np.asarray(values, np.float32).reshape(1, 32)
            line = {"name": name, "values": [float(value) for value in block[0]]}
            for kind, quantiser in (("q8_0", Q8_0), ("q4_0", Q4_0)):
                line[kind] = quantiser.quantize_blocks(block).tobytes().hex()
            file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
