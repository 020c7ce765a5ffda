#pragma once

#include "tools/openai/body_fields.h"
#include "tools/openai/request.h"

namespace minimind {

// Reads tools, tool_choice and parallel_tool_calls. With tool_choice "required", or a function by name, the grammar of
// the request becomes that of one call whose arguments are valid by the function's schema.
void read_tools(BodyFields& body, Request& request);

}  // namespace minimind
