#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "weights/checkpoint/checkpoint.h"
#include "weights/export/gguf.h"
#include "weights/tensor/output_tensor.h"

namespace minimind {

// What `convert` chooses types by, and the text that it quantises with.
struct TypeChoosing {
  std::string text;                 // --calibrate; empty: none
  std::optional<std::size_t> size;  // of the file, in bytes
  std::optional<double> bits;       // per weight of the matrices
  std::string plan;                 // a file; empty: none
};

// Returns the bytes that "3.2MB" means: a number and B, kB, MB or GB, of 1000. Throws UsageError for anything else.
std::size_t parse_size(const std::string& text);

// A checkpoint whose matrices have the types of the file to write, and these types.
struct ChosenTypes {
  Checkpoint checkpoint;
  WantedTypes types;
};

struct ChoosingWork {
  const Checkpoint& checkpoint;
  WantedTypes types;
  std::string tokenizer;  // its path; may be empty without a text
  std::size_t threads;
  bool quiet;
  // Returns what the file consists of, tokenizer included, with these types.
  std::function<GgufExport(const Checkpoint&, const WantedTypes&)> exported;
  // Called with progress; may throw to stop.
  std::function<void(std::size_t done, std::size_t total)> progress;
};

// Chooses the types by options.plan, options.size or options.bits, if given, and prints the plan of the latter two to
// standard output. Quantises the matrices with knowledge of the text, if there is one. Throws Error for plans that name
// tensors which the file does not have, for sizes that are too small, and for texts that cannot be used.
ChosenTypes choose_types(const TypeChoosing& options, const ChoosingWork& work);

}  // namespace minimind
