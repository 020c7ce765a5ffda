#include "tools/openai/parallel_options.h"

#include "runtime/engine/forward.h"
#include "runtime/engine/kv_cache.h"
#include "tools/options/option_checks.h"
#include "tools/terminal/note.h"

namespace minimind {
void ParallelArguments::add_to(CLI::App& command) {
  command.add_option("--parallel", texts, "generate up to N texts at once")
      ->capture_default_str()
      ->transform(whole_number(1, batch_tokens - 1));
  command
      .add_option("--kv-memory", kv_memory_mb,
                  "memory for the keys and values of all texts, in MB (default: half of what is free)")
      ->transform(whole_number(1, 1 << 30));
}

std::size_t ParallelArguments::kv_memory(bool quiet) const {
  if (kv_memory_mb) return *kv_memory_mb * 1'000'000;
  const std::size_t bytes = KvCache::default_budget();
  if (!quiet) {
    note("keys and values may take {:.1f} GB, half of the memory that is free; --kv-memory sets another limit",
         1e-9 * static_cast<double>(bytes));
  }
  return bytes;
}

}  // namespace minimind
