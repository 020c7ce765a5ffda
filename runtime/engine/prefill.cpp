#include "runtime/engine/prefill.h"

#include <algorithm>
#include <cstddef>

namespace minimind {

void prefill(Forward& forward, Context& context, std::span<const std::int32_t> tokens, std::span<float> logits) {
  for (std::size_t done = 0; done < tokens.size();) {
    const std::size_t count = std::min(forward.max_tokens(), tokens.size() - done);
    const bool last = done + count == tokens.size();
    forward.run(context, tokens.subspan(done, count), {logits.data(), last ? 1u : 0u, logits.size()});
    done += count;
  }
}

}  // namespace minimind
