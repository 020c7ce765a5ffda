#pragma once

#include <string>
#include <string_view>

#include "weights/io/error.h"
#include "weights/model/config.h"

namespace minimind {

// The message of an error, followed by the options that set what it is about: "...; state the two numbers (--heads and
// --kv-heads, or --config)".
std::string message_of(const Error& error);

// Where the value of a field of Config came from, in words: "rows of embed_tokens", "config.json", "--heads",
// "assumed: what v2 uses".
std::string source_text(std::string_view field, const ConfigSource& source);

}  // namespace minimind
