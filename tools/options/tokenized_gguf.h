#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "runtime/tokenizer/tokenizer_data.h"
#include "weights/base/fact.h"
#include "weights/checkpoint/checkpoint.h"
#include "weights/export/gguf.h"
#include "weights/tensor/weight_types.h"

namespace minimind {

// Returns export_gguf() with a tokenizer, if there is one, whose end of text is the config's, as when the checkpoint is
// run. Adds to `differences` in what other programs will read the tokenizer differently.
GgufExport export_with_tokenizer(const Checkpoint& checkpoint, const WantedTypes& types,
                                 const std::optional<TokenizerData>& tokenizer, const std::string& name,
                                 std::size_t threads, std::vector<Fact>& differences);

}  // namespace minimind
