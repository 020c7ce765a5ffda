#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/engine/context.h"

namespace minimind {

// Contexts of many texts under one budget of memory. A context that is released stays, so that a later prompt which
// starts with the same tokens (a system message, examples, an earlier turn) need not compute them again; the least
// recently used ones make room for new texts. Texts that start with the same tokens share the memory of these, which
// counts once: all texts of one prompt, or, of prompts with a common start, all but the first. At most `most_idle`
// contexts stay beside those in use, so that a text's start takes a bounded time however short the texts are.
class ContextPool {
 public:
  // `budget` in bytes of keys and values.
  ContextPool(const Config& config, KvType type, std::size_t budget, std::ptrdiff_t most_idle = 512);

  // Returns the default budget: half of the memory that could be had without swapping.
  static std::size_t default_budget();

  // Throws Error if the budget is too small for a text of `capacity` tokens alone.
  static void check_fits(const Config& config, KvType type, std::size_t budget, std::size_t capacity);

  // A context for a text of up to `capacity` tokens that starts with `prompt`. It holds the longest prefix of the
  // prompt that any context of the pool has, short of its last token. Null while contexts in use leave too little of
  // the budget, and while the prompt is_being_computed(), so that it is computed once: call again after the next step.
  // Also null if contexts in use would leave less than `spare` bytes of the budget. Throws Error as check_fits() does.
  // Valid until it is released.
  Context* acquire(std::span<const std::int32_t> prompt, std::size_t capacity, std::size_t spare = 0);
  void release(Context* context);

  // Returns true while a text in use is about to compute much of the prompt.
  bool is_being_computed(std::span<const std::int32_t> prompt);

  // The tokens that prompts and contexts were compared at so far, eight at once counted as one: about nanoseconds.
  std::size_t compared() const { return compared_; }

  // Drops all contexts, as after the model's weights have changed: those in use once they are released, and no other
  // text takes anything of them meanwhile.
  void clear();

  // Of all contexts, shared ones once, when one was last acquired or dropped.
  std::size_t bytes() const { return bytes_; }

 private:
  struct Entry {
    std::unique_ptr<Context> context;
    bool in_use;
    std::uint64_t last_use;
    std::vector<std::int32_t> prompt;  // that it was acquired for
    bool cleared = false;
  };
  struct Prefix {
    Context* context = nullptr;  // null: no context has any of it
    std::size_t size = 0;
    bool in_place = false;  // the context can be continued, rather than one that starts with a part of it
  };
  std::size_t count_bytes(bool only_in_use) const;
  std::size_t bytes_of(std::size_t capacity) const { return KvCache::bytes(config_, type_, capacity); }
  bool has(const Entry& entry, std::span<const std::int32_t> prompt, std::size_t count);
  std::size_t rest_in_common(std::span<const std::int32_t> a, std::span<const std::int32_t> b, std::size_t from);
  std::size_t tokens_to_come(const Entry& entry, std::span<const std::int32_t> prompt);
  Prefix best_prefix(std::span<const std::int32_t> prompt, std::size_t capacity);
  bool make_room(std::size_t capacity, std::size_t spare, Prefix& prefix);
  std::vector<Entry>::iterator entry_of(const Context* context);

  const Config& config_;
  KvType type_;
  std::size_t budget_;
  std::ptrdiff_t most_idle_;
  std::size_t bytes_ = 0;
  std::size_t compared_ = 0;
  std::uint64_t uses_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace minimind
