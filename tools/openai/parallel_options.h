#pragma once

#include <cstddef>
#include <optional>

#include "tools/options/command_options.h"

namespace minimind {

// The options of commands that generate many texts at once: --parallel and --kv-memory.
struct ParallelArguments {
  std::size_t texts = 16;
  std::optional<std::size_t> kv_memory_mb;

  void add_to(CommandOptions& command);

  // The bytes that the keys and values of all texts may take. Prints a notice about the default unless `quiet`.
  std::size_t kv_memory(bool quiet) const;
};

}  // namespace minimind
