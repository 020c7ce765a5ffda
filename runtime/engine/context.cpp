#include "runtime/engine/context.h"

#include <algorithm>
#include <cassert>

namespace minimind {

Context::Context(const Config& config, std::size_t capacity, KvType type) : cache_(config, capacity, type) {
  tokens_.reserve(capacity);
}

void Context::append(std::span<const std::int32_t> tokens) {
  assert(size() + tokens.size() <= capacity());
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
}

void Context::rewind(std::size_t size) {
  assert(size <= tokens_.size());
  tokens_.resize(size);
}

std::size_t Context::keep_common(std::span<const std::int32_t> prompt) {
  const auto most = prompt.first(prompt.empty() ? 0 : prompt.size() - 1);
  const auto differs = std::mismatch(tokens_.begin(), tokens_.end(), most.begin(), most.end()).first;
  rewind(static_cast<std::size_t>(differs - tokens_.begin()));
  return size();
}

}  // namespace minimind
