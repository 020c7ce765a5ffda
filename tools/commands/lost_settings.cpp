#include "tools/commands/lost_settings.h"

#include <fmt/core.h>

#include "tools/options/config_fields.h"
#include "weights/base/error.h"
#include "weights/io/json_fields.h"
#include "weights/model/infer_config.h"

namespace minimind {
namespace {

// Returns the config with which the checkpoint would be read back.
Checkpoint read_back(const Checkpoint& checkpoint) {
  CanonicalTensors canonical{
      .tensors = checkpoint.tensors, .style = NamingStyle::hugging_face, .skipped = {}, .other_modalities = {}};
  if (rope_layout(checkpoint.config.family) == RopeLayout::adjacent_pairs) canonical.style = NamingStyle::v1;
  InferredConfig inferred = infer_config(canonical, std::nullopt, {}, "it");
  Checkpoint result;
  result.config = std::move(inferred.config);
  result.sources = std::move(inferred.sources);
  return result;
}

}  // namespace

std::vector<Fact> lost_settings(const Checkpoint& checkpoint) {
  std::vector<Fact> lost;
  try {
    const auto kept = config_fields(read_back(checkpoint));
    const auto meant = config_fields(checkpoint);
    for (std::size_t i = 0; i < meant.size(); ++i) {
      if (meant[i].name == "family" || meant[i].value == kept[i].value) continue;
      lost.push_back(Fact("{} is {}, not {}", meant[i].name, dump_json(meant[i].value), dump_json(kept[i].value)));
    }
  } catch (const Error& error) {
    lost.push_back(Fact("{}", error.what()));
  }
  return lost;
}

}  // namespace minimind
