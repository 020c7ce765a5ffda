#pragma once

#include <array>
#include <cstdint>

namespace minimind {

// The code books of ggml's IQ types: the vectors that a block's quants select. Facts from the `gguf` Python package, as
// tests/golden_quantize records them. A vector is packed into 16 bits, with the code of its first value lowest.

// 8 codes of 2 bits, which represent 8, 25 and 43.
extern const std::array<std::uint16_t, 256> iq2_xxs_grid;
extern const std::array<std::uint16_t, 512> iq2_xs_grid;
extern const std::array<std::uint16_t, 1024> iq2_s_grid;

// 4 codes of 3 bits. They represent 4, 12, 20, 28, 36, 44, 52 and 62 in iq3_xxs, and 1, 3, 5, ... 15 in iq3_s.
extern const std::array<std::uint16_t, 256> iq3_xxs_grid;
extern const std::array<std::uint16_t, 512> iq3_s_grid;

// iq1_s and iq1_m: 8 codes of 2 bits, which represent -1, 0 and 1.
extern const std::array<std::uint16_t, 2048> iq1_grid;

}  // namespace minimind
