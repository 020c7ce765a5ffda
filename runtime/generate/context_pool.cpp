#include "runtime/generate/context_pool.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <tuple>
#include <utility>

#include "weights/io/error.h"

namespace minimind {
namespace {

// The logits of a prompt's last token are needed, so it is never taken from a cache.
std::size_t common_prefix(const Context& context, std::span<const std::int32_t> prompt) {
  const auto most = prompt.first(prompt.empty() ? 0 : prompt.size() - 1);
  const auto tokens = context.tokens();
  return static_cast<std::size_t>(std::ranges::mismatch(tokens, most).in1 - tokens.begin());
}

}  // namespace

ContextPool::ContextPool(const Config& config, KvType type, std::size_t budget)
    : config_(config), type_(type), bytes_per_position_(KvCache::bytes_per_position(config, type)), budget_(budget) {}

Context* ContextPool::acquire(std::span<const std::int32_t> prompt, std::size_t capacity) {
  if (bytes_of(capacity) > budget_) {
    throw Error(
        fmt::format("a text of {} tokens needs {:.1f} MB for keys and values, but all texts together may take "
                    "{:.1f} MB",
                    capacity, 1e-6 * static_cast<double>(bytes_of(capacity)), 1e-6 * static_cast<double>(budget_)));
  }
  Entry* const best = longest_prefix(prompt);
  const std::size_t common = best ? common_prefix(*best->context, prompt) : 0;
  // An idle context is continued in place if most of it is the prompt's prefix; else it stays for others.
  if (best && !best->in_use && best->context->capacity() >= capacity && 2 * common > best->context->size()) {
    best->in_use = true;
    best->context->rewind(common);
    return best->context.get();
  }
  if (!make_room(bytes_of(capacity), best ? best->context.get() : nullptr)) return nullptr;
  auto context = std::make_unique<Context>(config_, capacity, type_);
  const auto source = std::ranges::find_if(
      entries_, [&](const Entry& entry) { return common > 0 && common_prefix(*entry.context, prompt) == common; });
  if (source != entries_.end()) context->copy_prefix(*source->context, common);
  bytes_ += bytes_of(capacity);
  entries_.push_back({std::move(context), true, 0});
  return entries_.back().context.get();
}

void ContextPool::release(Context* context) {
  const auto entry = std::ranges::find(entries_, context, [](const Entry& of) { return of.context.get(); });
  assert(entry != entries_.end() && entry->in_use);
  entry->in_use = false;
  entry->last_use = ++uses_;
}

ContextPool::Entry* ContextPool::longest_prefix(std::span<const std::int32_t> prompt) {
  const auto best = std::ranges::max_element(entries_, {}, [&](const Entry& entry) {
    return std::pair(common_prefix(*entry.context, prompt), !entry.in_use);
  });
  return best == entries_.end() ? nullptr : &*best;
}

// Drops contexts that are not in use, the least recently used first and `kept` last, until there is room.
bool ContextPool::make_room(std::size_t bytes, const Context* kept) {
  while (bytes_ + bytes > budget_) {
    const auto oldest = std::ranges::min_element(entries_, {}, [&](const Entry& entry) {
      return std::tuple(entry.in_use, entry.context.get() == kept, entry.last_use);
    });
    if (oldest == entries_.end() || oldest->in_use) return false;
    bytes_ -= bytes_of(oldest->context->capacity());
    entries_.erase(oldest);
  }
  return true;
}

}  // namespace minimind
