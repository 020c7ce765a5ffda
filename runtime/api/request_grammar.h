#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "runtime/api/minimind.h"
#include "runtime/grammar/grammar.h"

namespace minimind {

// Returns the texts. Throws UsageError if one is empty or is not UTF-8, and Failure if one is NULL.
std::vector<std::string> texts_of(const char* const* given, std::size_t count, const char* name);

// Returns the grammar of a request's constraint, null if it has none. Appends to `notes` what of a JSON Schema is
// ignored, a line each. Throws UsageError for several constraints, and Error as the compilers of grammars do.
std::shared_ptr<const Grammar> grammar_of(const minimind_request& request, std::string& notes);

}  // namespace minimind
