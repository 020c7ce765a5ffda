#pragma once

#include <string>

#include "tools/options/options.h"

namespace minimind {

// Compares the points of a model with a trace, prints how far each is from it, and which is the first over the
// tolerance. The tokens are those of the trace; if the options give some, they must be the same. Returns whether all
// points are within the tolerance. Throws Error if the trace is of other tokens, or of a model with other shapes.
bool compare_trace(const std::string& trace, const CheckpointOptions& checkpoint, const RunOptions& run,
                   const TokenOptions& tokens, double tolerance, bool json);

}  // namespace minimind
