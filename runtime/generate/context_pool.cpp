#include "runtime/generate/context_pool.h"

#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <fstream>
#include <initializer_list>
#include <string>
#include <tuple>
#include <utility>

#include "weights/base/error.h"

namespace minimind {
namespace {

// Tokens of a prefix. To compute fewer again takes less time than the step that a text waits.
constexpr std::size_t worth_waiting = 32;

// Tokens of a prefix that a text may rather compute again than copy what it could share with other texts.
constexpr std::size_t worth_sharing = 64;

}  // namespace

ContextPool::ContextPool(const Config& config, KvType type, std::size_t budget, std::ptrdiff_t most_idle)
    : config_(config), type_(type), budget_(budget), most_idle_(most_idle) {}

std::size_t ContextPool::default_budget() {
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  for (std::size_t kilobytes = 0; file >> name >> kilobytes; std::getline(file, unit)) {
    if (name == "MemAvailable:") return kilobytes * 1024 / 2;
  }
  return std::size_t{1} << 30;
}

void ContextPool::check_fits(const Config& config, KvType type, std::size_t budget, std::size_t capacity) {
  const std::size_t bytes = KvCache::bytes(config, type, capacity);
  if (bytes <= budget) return;
  throw Error(
      fmt::format("prompt and answer of up to {} tokens need {:.1f} MB for keys and values, but all texts together may "
                  "take {:.1f} MB; give a smaller max_tokens or a larger kv_memory",
                  capacity, 1e-6 * static_cast<double>(bytes), 1e-6 * static_cast<double>(budget)));
}

Context* ContextPool::acquire(std::span<const std::int32_t> prompt, std::size_t capacity, std::size_t spare) {
  check_fits(config_, type_, budget_, capacity);
  if (is_being_computed(prompt)) return nullptr;
  Prefix prefix = best_prefix(prompt, capacity);
  if (prefix.in_place) {
    Entry& entry = *entry_of(prefix.context);
    entry.in_use = true;
    entry.prompt.assign(prompt.begin(), prompt.end());
    prefix.context->rewind(prefix.size);
    return prefix.context;
  }
  if (!make_room(capacity, spare, prefix)) return nullptr;
  using Cuts = std::initializer_list<std::size_t>;
  const std::size_t last = prompt.empty() ? 0 : prompt.size() - 1;
  auto context = prefix.context
                     ? std::make_unique<Context>(*prefix.context, prefix.size, capacity, Cuts{prefix.size, last})
                     : std::make_unique<Context>(config_, capacity, type_, Cuts{last});
  entries_.push_back({std::move(context), true, 0, {prompt.begin(), prompt.end()}});
  bytes_ = count_bytes(false);
  return entries_.back().context.get();
}

void ContextPool::release(Context* context) {
  const auto entry = entry_of(context);
  assert(entry != entries_.end() && entry->in_use);
  if (entry->cleared) {
    entries_.erase(entry);
    bytes_ = count_bytes(false);
    return;
  }
  entry->in_use = false;
  entry->last_use = ++uses_;
}

void ContextPool::clear() {
  std::erase_if(entries_, [](const Entry& entry) { return !entry.in_use; });
  for (Entry& entry : entries_) entry.cleared = true;
  bytes_ = count_bytes(false);
}

std::size_t ContextPool::count_bytes(bool only_in_use) const {
  std::vector<const KvCells*> all;
  for (const Entry& entry : entries_) {
    if (only_in_use && !entry.in_use) continue;
    for (const KvCache::Part& part : entry.context->cache().parts()) all.push_back(part.cells.get());
  }
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  std::size_t bytes = 0;
  for (const KvCells* const cells : all) bytes += bytes_of(cells->capacity());
  return bytes;
}

std::vector<ContextPool::Entry>::iterator ContextPool::entry_of(const Context* context) {
  return std::ranges::find(entries_, context, [](const Entry& entry) { return entry.context.get(); });
}

// Whether a context starts with so many tokens of the prompt.
bool ContextPool::has(const Entry& entry, std::span<const std::int32_t> prompt, std::size_t count) {
  const std::span<const std::int32_t> tokens = entry.context->tokens();
  if (count > std::min(tokens.size(), prompt.size())) return false;
  compared_ += 1 + count / 8;
  return std::equal(prompt.begin(), prompt.begin() + static_cast<std::ptrdiff_t>(count), tokens.begin());
}

// How many tokens two texts have in common that have so many.
std::size_t ContextPool::rest_in_common(std::span<const std::int32_t> a, std::span<const std::int32_t> b,
                                        std::size_t from) {
  const std::size_t rest = common_prefix(a.subspan(from), b.subspan(from));
  compared_ += rest;
  return from + rest;
}

// The longest prefix, or one that is a little shorter, if it need not be copied.
ContextPool::Prefix ContextPool::best_prefix(std::span<const std::int32_t> prompt, std::size_t capacity) {
  Prefix best;
  std::size_t best_worth = 0;
  const auto reusable = prompt.first(prompt.size() - std::min<std::size_t>(prompt.size(), 1));
  for (const Entry& entry : entries_) {
    const std::size_t least = std::max(best_worth + 1, worth_sharing + 1) - worth_sharing;  // to be worth more
    if (entry.cleared || !has(entry, reusable, least)) continue;
    Context& context = *entry.context;
    const std::size_t size = rest_in_common(context.tokens(), reusable, least);
    // An idle context is continued in place if most of it is the prompt's prefix; else it stays for others.
    const bool in_place =
        !entry.in_use && context.capacity() >= capacity && 2 * size > context.size() && context.cache().is_own(size);
    const std::size_t not_copied = in_place ? size : context.cache().shareable(size);
    const std::size_t worth = size + std::min(not_copied, worth_sharing);
    if (worth > best_worth) {
      best = {&context, size, in_place};
      best_worth = worth;
    }
  }
  return best;
}

// How many tokens of a prompt a text will have once its own prompt is computed; 0 if it gets no more of them.
std::size_t ContextPool::tokens_to_come(const Entry& entry, std::span<const std::int32_t> prompt) {
  const std::size_t now = entry.context->size();
  if (!entry.in_use || now >= entry.prompt.size() || !has(entry, prompt, now)) return 0;
  const std::size_t later = rest_in_common(entry.prompt, prompt, now);
  return later > now ? later : 0;
}

// Whether a text in use will soon have much more of the prompt than any context that will get no more of it.
bool ContextPool::is_being_computed(std::span<const std::int32_t> prompt) {
  if (prompt.empty()) return false;
  const auto reusable = prompt.first(prompt.size() - 1);
  std::size_t to_come = 0;
  std::vector<const Entry*> others;
  for (const Entry& entry : entries_) {
    if (entry.cleared) continue;
    const std::size_t of_entry = tokens_to_come(entry, reusable);
    to_come = std::max(to_come, of_entry);
    if (of_entry == 0) others.push_back(&entry);
  }
  const auto has_most = [&](const Entry* entry) { return has(*entry, reusable, to_come - worth_waiting + 1); };
  return to_come >= worth_waiting && std::ranges::none_of(others, has_most);
}

// Drops contexts that are not in use, the least recently used first and that of the prefix last, until there is room
// for a text that starts with the prefix.
bool ContextPool::make_room(std::size_t capacity, std::size_t spare, Prefix& prefix) {
  const auto shared = [&] { return prefix.context ? prefix.context->cache().shareable(prefix.size) : 0; };
  if (spare > 0 && count_bytes(true) + bytes_of(capacity - shared()) + spare > budget_) return false;
  while (true) {
    bytes_ = count_bytes(false);
    const bool fits = bytes_ + bytes_of(capacity - shared()) <= budget_;
    if (fits && std::ranges::count(entries_, false, &Entry::in_use) < most_idle_) return true;
    const auto oldest = std::ranges::min_element(entries_, {}, [&](const Entry& entry) {
      return std::tuple(entry.in_use, entry.context.get() == prefix.context, entry.last_use);
    });
    if (oldest == entries_.end() || oldest->in_use) return fits;
    if (oldest->context.get() == prefix.context) prefix = {};
    entries_.erase(oldest);
  }
}

}  // namespace minimind
