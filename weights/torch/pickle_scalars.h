#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "weights/io/byte_reader.h"
#include "weights/torch/pickle.h"
#include "weights/torch/pickle_opcodes.h"

namespace minimind::pickle {

// The value that `op` alone describes, its argument read from `reader`: None, a bool, a number, a string or bytes.
// Nothing when `op` is not of that kind.
std::optional<Value> read_scalar(Op op, ByteReader& reader);

// The number that `digits`, the text form of a memo index, spell; Error when they spell none or it does not fit.
std::uint64_t parse_index(std::string_view digits, const ByteReader& reader);

}  // namespace minimind::pickle
