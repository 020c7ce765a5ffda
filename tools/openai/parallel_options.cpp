#include "tools/openai/parallel_options.h"

#include "runtime/engine/forward.h"
#include "runtime/generate/context_pool.h"
#include "tools/options/help.h"
#include "tools/options/option_checks.h"
#include "tools/terminal/language.h"
#include "tools/terminal/note.h"

namespace minimind {
void ParallelArguments::add_to(CommandOptions& command) {
  command.add_option("--parallel", texts, bilingual("generate up to N texts at once", "最多同时生成 N 段文本"))
      ->group(speed_group)
      ->type_name("N")
      ->capture_default_str()
      ->transform(whole_number(1, batch_tokens - 1));
  command
      .add_option("--kv-memory", kv_memory_mb,
                  bilingual("memory for the keys and values of all texts, in MB (default: half of what is free)",
                            "所有文本的 KV 缓存可用的内存，单位 MB（默认：空闲内存的一半）"))
      ->group(speed_group)
      ->type_name("MB")
      ->transform(whole_number(1, largest_whole));
}

std::size_t ParallelArguments::kv_memory(bool quiet) const {
  if (kv_memory_mb) return *kv_memory_mb * 1'000'000;
  const std::size_t bytes = ContextPool::default_budget();
  if (!quiet) {
    note("keys and values may take {:.1f} GB, half of the memory that is free; --kv-memory sets another limit",
         1e-9 * static_cast<double>(bytes));
  }
  return bytes;
}

}  // namespace minimind
