#include "tools/openai/parallel_options.h"

#include <fstream>
#include <string>

#include "runtime/engine/forward.h"
#include "tools/options/option_checks.h"
#include "tools/terminal/note.h"

namespace minimind {
namespace {

// Half of what the system says could be had without swapping.
std::size_t default_kv_memory() {
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  for (std::size_t kilobytes = 0; file >> name >> kilobytes; std::getline(file, unit)) {
    if (name == "MemAvailable:") return kilobytes * 1024 / 2;
  }
  return std::size_t{1} << 30;
}

}  // namespace

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
  const std::size_t bytes = default_kv_memory();
  if (!quiet) {
    note("keys and values may take {:.1f} GB, half of the memory that is free; --kv-memory sets another limit",
         1e-9 * static_cast<double>(bytes));
  }
  return bytes;
}

}  // namespace minimind
