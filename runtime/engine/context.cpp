#include "runtime/engine/context.h"

#include <algorithm>
#include <cassert>

namespace minimind {

std::size_t common_prefix(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

Context::Context(const Config& config, std::size_t capacity, KvType type, std::initializer_list<std::size_t> cuts)
    : cache_(config, capacity, type, cuts) {
  tokens_.reserve(capacity);
}

Context::Context(const Context& from, std::size_t size, std::size_t capacity, std::initializer_list<std::size_t> cuts)
    : cache_(from.cache_, size, capacity, cuts) {
  tokens_.reserve(capacity);
  append(from.tokens().first(size));
}

void Context::append(std::span<const std::int32_t> tokens) {
  assert(size() + tokens.size() <= capacity());
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
}

void Context::rewind(std::size_t size) {
  assert(size <= tokens_.size());
  cache_.make_own(size);
  tokens_.resize(size);
}

std::size_t Context::common_prefix(std::span<const std::int32_t> prompt) const {
  return minimind::common_prefix(tokens_, prompt.first(prompt.empty() ? 0 : prompt.size() - 1));
}

}  // namespace minimind
