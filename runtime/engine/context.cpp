#include "runtime/engine/context.h"

#include <algorithm>
#include <cassert>

namespace minimind {

std::size_t common_prefix(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

Context::Context(const Config& config, std::size_t capacity, KvType type) : cache_(config, capacity, type) {
  tokens_.reserve(capacity);
}

void Context::append(std::span<const std::int32_t> tokens) {
  assert(size() + tokens.size() <= capacity());
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
}

void Context::copy_prefix(const Context& from, std::size_t size) {
  assert(size <= from.size() && size <= capacity() && from.cache_.type() == cache_.type());
  const auto source = from.cache_.filled_parts(size), target = cache_.filled_parts(size);
  assert(source.size() == target.size());
  for (std::size_t i = 0; i < source.size(); ++i) std::ranges::copy(source[i], target[i].begin());
  tokens_.assign(from.tokens_.begin(), from.tokens_.begin() + static_cast<std::ptrdiff_t>(size));
}

void Context::rewind(std::size_t size) {
  assert(size <= tokens_.size());
  tokens_.resize(size);
}

std::size_t Context::common_prefix(std::span<const std::int32_t> prompt) const {
  return minimind::common_prefix(tokens_, prompt.first(prompt.empty() ? 0 : prompt.size() - 1));
}

}  // namespace minimind
