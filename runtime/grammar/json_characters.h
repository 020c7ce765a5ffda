#pragma once

#include <vector>

#include "runtime/grammar/code_points.h"

namespace minimind {

// Returns the spellings of a character of the set inside a JSON string, each as the sets of its bytes. With
// `every_escape` also those that are not needed, such as \u0061 for a; otherwise those of Python's json.dumps: as it
// is, or escaped if it must be or is beyond ASCII.
std::vector<std::vector<ByteSet>> json_character_spellings(const CodePoints& set, bool every_escape);

}  // namespace minimind
