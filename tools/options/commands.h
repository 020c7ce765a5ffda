#pragma once

#include <functional>

#include "tools/options/command_options.h"

namespace minimind {

// Each function adds the options of one command to `command`. After the command line has been parsed, the returned
// function runs the command and returns the exit status; it throws Error and UsageError.
using Command = std::function<int()>;

Command add_generate(CommandOptions& command);
Command add_chat(CommandOptions& command);
Command add_inspect(CommandOptions& command);
Command add_logits(CommandOptions& command);
Command add_compare(CommandOptions& command);
Command add_perplexity(CommandOptions& command);
Command add_tokenize(CommandOptions& command);
Command add_render(CommandOptions& command);
Command add_validate(CommandOptions& command);
Command add_convert(CommandOptions& command);
Command add_batch(CommandOptions& command);
Command add_serve(CommandOptions& command);
Command add_watch(CommandOptions& command);
Command add_bench(CommandOptions& command);

}  // namespace minimind
