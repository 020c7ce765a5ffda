#include "runtime/generate/context_pool.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <tuple>
#include <utility>

#include "weights/io/error.h"

namespace minimind {
namespace {

// Tokens of a prefix. While a text waits for fewer, more is lost than is gained.
constexpr std::size_t worth_waiting = 64;

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
  if (is_being_computed(prompt)) return nullptr;
  const Prefix prefix = longest_prefix(prompt);
  Context* const source = prefix.entry ? prefix.entry->context.get() : nullptr;
  // An idle context is continued in place if most of it is the prompt's prefix; else it stays for others.
  if (source && !prefix.entry->in_use && source->capacity() >= capacity && 2 * prefix.size > source->size()) {
    prefix.entry->in_use = true;
    prefix.entry->prompt.assign(prompt.begin(), prompt.end());
    source->rewind(prefix.size);
    return source;
  }
  if (!make_room(bytes_of(capacity), source)) return nullptr;
  auto context = std::make_unique<Context>(config_, capacity, type_);
  if (std::ranges::any_of(entries_, [&](const Entry& entry) { return entry.context.get() == source; })) {
    context->copy_prefix(*source, prefix.size);
  }
  bytes_ += bytes_of(capacity);
  entries_.push_back({std::move(context), true, 0, {prompt.begin(), prompt.end()}});
  return entries_.back().context.get();
}

void ContextPool::release(Context* context) {
  const auto entry = std::ranges::find(entries_, context, [](const Entry& of) { return of.context.get(); });
  assert(entry != entries_.end() && entry->in_use);
  entry->in_use = false;
  entry->last_use = ++uses_;
}

void ContextPool::clear() {
  for (const Entry& entry : entries_) {
    if (!entry.in_use) bytes_ -= bytes_of(entry.context->capacity());
  }
  std::erase_if(entries_, [](const Entry& entry) { return !entry.in_use; });
}

ContextPool::Prefix ContextPool::longest_prefix(std::span<const std::int32_t> prompt) {
  Prefix best;
  for (Entry& entry : entries_) {
    const std::size_t size = entry.context->common_prefix(prompt);
    const bool idle_of_same_size = size > 0 && size == best.size && best.entry->in_use && !entry.in_use;
    if (size > best.size || idle_of_same_size) best = {&entry, size};
  }
  return best;
}

// Whether a text in use will soon have much more of the prompt than any context that will get no more of it.
bool ContextPool::is_being_computed(std::span<const std::int32_t> prompt) const {
  if (prompt.empty()) return false;
  std::size_t computed = 0, to_come = 0;
  for (const Entry& entry : entries_) {
    const std::size_t now = entry.context->common_prefix(prompt);
    const std::size_t later = common_prefix(entry.prompt, prompt.first(prompt.size() - 1));
    const bool grows = entry.in_use && now == entry.context->size() && now < later;
    if (grows) {
      to_come = std::max(to_come, later);
    } else {
      computed = std::max(computed, now);
    }
  }
  return to_come >= computed + worth_waiting;
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
