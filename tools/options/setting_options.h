#pragma once

#include <string>
#include <string_view>

#include "weights/base/error.h"
#include "weights/model/config.h"

namespace minimind {

// Returns the message of an error, followed by the options for its setting: "...; state the two numbers (--heads and
// --kv-heads, or --config)".
std::string message_of(const Error& error);

// Returns the source of a Config field's value: "rows of embed_tokens", "config.json", "--heads", "assumed: what v2
// uses".
Fact source_of(std::string_view field, const ConfigSource& source);

}  // namespace minimind
