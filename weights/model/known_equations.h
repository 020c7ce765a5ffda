#pragma once

#include <string_view>

namespace minimind {

// The classes and functions of MiniMind's equations in each version until 2026-08-21, as digests:
// tools/reference/known_equations.py.
inline constexpr std::string_view known_equations[] = {
    "013e51195e01", "0267f5afd6da", "037dc71733cc", "07a69072a9f0", "09ccf8824ed1", "0b0988725527", "0b10e5299f79",
    "0b78181c2d67", "0d4ea81b3236", "0dd30bc4c5a5", "1b0611f4bda7", "1c5d50ee3915", "1ce814fae9a3", "21308e9cdb8e",
    "2be8d3965ce6", "3421ba728e75", "37ce37285324", "38908f14a6e3", "390abebcd88d", "3b1a3561f0eb", "565da8d0d033",
    "579d00ec217a", "5ac91ed1d3e3", "5ee423990dbb", "6e8eeb6c5862", "79ab2ec128f6", "79e0668811d8", "80a20e03d2e2",
    "80e725355ff5", "84ac8cad9b83", "87cd9a968674", "89242b701045", "8a80d001a8c6", "8afbe48942d9", "9c8ae476b34f",
    "9fdce63a2d4d", "a4c0cf48d0b6", "ab09223dbe0e", "b10a76d92fd7", "b8fd06ec74f5", "bd4c8ec6b13d", "c083ba51ba10",
    "c73c67ad2d90", "d6a7620569ba", "d761e5cf3e2f", "e189f9357ea6", "e57a48205853", "e6e182ae76ab", "e89171028c4a",
    "ed4652806f92", "fadbe88c650f", "fbbbbdc03149", "fc10b5cd59e7", "fd706ee45809", "fec41c9c7c16", "feea85d24124",
};

}  // namespace minimind
