#pragma once

#include <optional>
#include <string>

#include "runtime/jinja/value.h"

namespace minimind::jinja {

// Python's str(): what {{ value }} prints. Throws Failure for functions, methods, loops and iterators, whose text in
// Python is an address.
std::string shown(const Value& value, Budget& budget);

struct JsonStyle {
  bool ensure_ascii = false;
  std::optional<std::string> indent;  // a level's; without it everything is on one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sort_keys = false;
};

// Python's json.dumps(). Throws Failure for what JSON cannot hold.
std::string to_json(const Value& value, const JsonStyle& style, Budget& budget);

}  // namespace minimind::jinja
