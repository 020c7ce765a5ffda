#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/jinja/builtins.h"

namespace minimind::jinja {

// The filters, or the tests.
struct Catalogue {
  std::string_view kind;  // "filter"
  std::vector<Builtin> supported;
  Names unsupported;  // of Jinja2

  // Returns the one of this name, null if there is none; then missing() returns the reason.
  const Builtin* find(std::string_view name) const { return find_in(supported, name); }
  std::string missing(std::string_view name) const;
  // Returns the one that the value names. Throws Failure if there is none.
  const Builtin& named(const Value& name) const;
};

const Catalogue& filters();
const Catalogue& tests();

}  // namespace minimind::jinja
