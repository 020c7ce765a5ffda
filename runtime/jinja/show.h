#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/jinja/value.h"

namespace minimind::jinja {

// Python's str(), the text of {{ value }}. Throws Failure for functions, methods, loops and iterators, whose text in
// Python is an address.
std::string shown(const Value& value, Budget& budget);

struct JsonStyle {
  bool ensure_ascii = false;
  std::optional<std::string> indent;  // per level; if unset, everything is on one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sort_keys = false;
};

// Python's json.dumps(). Throws Failure for values that JSON cannot represent.
std::string to_json(const Value& value, const JsonStyle& style, Budget& budget);

// `format % arguments`, with only Python's directives %s, %d, %f and %%; numbers may have a width with a leading 0 and
// a precision, such as %02d and %.2f.
Value formatted(Context& context, const Text& format, const Value& arguments);

// subject.format(arguments), with fields such as {}, {0} and {name}; for numbers also {:02d}, {:.2f} and similar.
Value format_fields(Context& context, const Value& subject, const Arguments& arguments);

}  // namespace minimind::jinja
