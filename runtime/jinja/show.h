#pragma once

#include <optional>
#include <string>

#include "runtime/jinja/value.h"

namespace minimind::jinja {

// Python's str(), the text of {{ value }}. Throws Failure for ranges, and for functions, loops, namespaces and
// iterators, whose text in Python is an address.
MarkedText shown(const Value& value, Budget& budget);

// Returns str() of the value. Throws Failure for escaped text, which would stay escaped in Python.
MarkedText text_argument(const Value& value, Budget& budget);

struct JsonStyle {
  bool ensure_ascii = false;
  std::optional<std::string> indent;  // per level; if unset, everything is on one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

// Python's json.dumps(). Throws Failure for values that JSON cannot represent.
MarkedText to_json(const Value& value, const JsonStyle& style, Budget& budget);

// `format % arguments`, with only Python's directives %s, %d and %%.
Value formatted(const Value& format, const Value& arguments, Budget& budget);

}  // namespace minimind::jinja
