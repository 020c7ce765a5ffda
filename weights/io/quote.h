#pragma once

#include <string>
#include <string_view>

namespace minimind {

// `name`, which came from a file, made safe for a one-line message: in single quotes, cut after 200 bytes, with
// control characters, invisible ones and bytes that are not UTF-8 written as escapes.
std::string quote(std::string_view name);

// Whether a tensor may be called so: 1 to 1000 bytes of UTF-8 without control or invisible characters. The limit is
// ours: neither PyTorch nor safetensors has one, and the longest name MiniMind writes is below 100.
bool is_tensor_name(std::string_view name);

}  // namespace minimind
