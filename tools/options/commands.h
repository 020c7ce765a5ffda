#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace minimind {

// Each function adds the options of one command to `command`. After the command line has been parsed, the returned
// function runs the command and returns the exit status; it throws Error and UsageError.
using Command = std::function<int()>;

Command add_generate(CLI::App& command);
Command add_chat(CLI::App& command);
Command add_inspect(CLI::App& command);
Command add_logits(CLI::App& command);
Command add_compare(CLI::App& command);
Command add_perplexity(CLI::App& command);
Command add_tokenize(CLI::App& command);
Command add_render(CLI::App& command);
Command add_validate(CLI::App& command);
Command add_convert(CLI::App& command);
Command add_batch(CLI::App& command);
Command add_serve(CLI::App& command);
Command add_watch(CLI::App& command);
Command add_bench(CLI::App& command);

}  // namespace minimind
