#include "runtime/engine/context.h"

#include <algorithm>
#include <cassert>

namespace minimind {

Context::Context(const Config& config, std::size_t capacity, KvType type) : cache_(config, capacity, type) {
  tokens_.reserve(capacity);
}

void Context::run(Forward& forward, std::span<const std::int32_t> tokens, Matrix<float> logits) {
  assert(cache_.size() == size());
  forward.run(tokens, cache_, logits);
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
}

void Context::assign(std::span<const std::int32_t> tokens) {
  assert(tokens.size() <= capacity());
  cache_.rewind(0);
  cache_.advance(tokens.size());
  tokens_.assign(tokens.begin(), tokens.end());
}

void Context::rewind(std::size_t size) {
  assert(size <= tokens_.size());
  cache_.rewind(size);
  tokens_.resize(size);
}

std::size_t Context::keep_common(std::span<const std::int32_t> prompt) {
  const auto most = prompt.first(prompt.empty() ? 0 : prompt.size() - 1);
  const auto differs = std::mismatch(tokens_.begin(), tokens_.end(), most.begin(), most.end()).first;
  rewind(static_cast<std::size_t>(differs - tokens_.begin()));
  return size();
}

void prefill(Forward& forward, Context& context, std::span<const std::int32_t> tokens, std::span<float> logits,
             const std::atomic<bool>& interrupted) {
  for (std::size_t done = 0; done < tokens.size() && !interrupted;) {
    const std::size_t count = std::min(forward.max_tokens(), tokens.size() - done);
    const bool last = done + count == tokens.size();
    context.run(forward, tokens.subspan(done, count), Matrix<float>{logits.data(), last ? 1u : 0u, logits.size()});
    done += count;
  }
}

}  // namespace minimind
