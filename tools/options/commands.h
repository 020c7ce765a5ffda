#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace minimind {

// Each function adds one command with its options to `app`. After the command line has been parsed, the returned
// function runs the command and returns the exit status; it throws Error and UsageError.
using Command = std::function<int()>;

Command add_generate(CLI::App& app);
Command add_chat(CLI::App& app);
Command add_inspect(CLI::App& app);
Command add_logits(CLI::App& app);
Command add_compare(CLI::App& app);
Command add_perplexity(CLI::App& app);
Command add_tokenize(CLI::App& app);
Command add_render(CLI::App& app);
Command add_validate(CLI::App& app);
Command add_convert(CLI::App& app);
Command add_batch(CLI::App& app);
Command add_serve(CLI::App& app);
Command add_bench(CLI::App& app);

}  // namespace minimind
