#pragma once

#include <string>
#include <string_view>

namespace minimind {

// Returns a name from a file, safe for a one-line message. It is in single quotes and truncated after 200 bytes.
// Control characters, invisible characters and bytes that are not UTF-8 are escaped.
std::string quote(std::string_view name);

// Returns true if `name` is a valid tensor name: 1 to 1000 bytes of UTF-8 without control or invisible characters. The
// limit is our own: PyTorch and safetensors have none, and MiniMind's longest name is below 100 bytes.
bool is_tensor_name(std::string_view name);

}  // namespace minimind
