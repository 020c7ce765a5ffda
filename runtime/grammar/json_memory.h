#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace minimind {

// What a JSON text has so far of names and items that must not be repeated: those of the object or array that is open,
// and of all around it. Scopes are never changed, so that several continuations of a text can share them.
class JsonMemory {
 public:
  using Scope = std::uint32_t;  // 0: outside of all
  static constexpr Scope repeated = ~0u;
  static constexpr std::size_t most_compared = std::size_t{64} << 20;

  struct Mark {
    std::size_t scopes, entries;
  };

  Mark mark() const { return {scopes_.size(), entries_.size()}; }
  // Forgets all scopes made after the mark.
  void forget(Mark mark);
  void clear() {
    forget({1, 1});
    compared_ = 0;
  }

  // An object or array that starts at this byte of the text, inside of a scope; and the scope around one.
  Scope open(Scope outer, std::size_t at);
  Scope outer(Scope scope) const { return scopes_[scope].outer; }

  // Where the name or item of a scope started, and whether it is an item of an array that has others.
  std::size_t begin_of(Scope scope) const { return scopes_[scope].begin; }
  bool has_items(Scope scope) const { return entries_[scopes_[scope].last].end != 0; }
  // Whether both are in the same object or array.
  bool same(Scope a, Scope b) const { return scopes_[a].opened == scopes_[b].opened; }

  // A name or an item starts at this byte.
  Scope begin(Scope scope, std::size_t at);

  // Adds the name, or the item, that started last and ends with `text`. Returns `repeated` if the scope has it already.
  // A name is given without its quotes. Items are equal as JSON values are. Throws TooMuchWork if the items of a text,
  // those within others counted again, have over most_compared bytes.
  Scope add_name(Scope scope, std::string_view text);
  Scope add_item(Scope scope, std::string_view text);

  // Returns what may follow in `text` so that the item that started last becomes one that its array has, as that was
  // written but for whitespace between its parts: sorted, each once, of the last items, and takes the bytes of
  // those that it looked at from `bytes_left`.
  std::vector<std::string> repetitions(Scope scope, std::string_view text, std::size_t& bytes_left) const;

  // Of the bytes that add_item() has compared, since clear().
  std::size_t compared() const { return compared_; }
  void set_compared(std::size_t bytes) { compared_ = bytes; }

 private:
  struct Level {
    Scope outer = 0;
    Scope opened = 0;        // of the same object or array, when it was empty
    std::uint32_t last = 0;  // of entries_
    std::size_t begin = 0;
  };
  // Has the entries before it, as a list with a second link further back, so that any of them is found in logarithmic
  // time.
  struct Entry {
    std::string text;
    std::uint32_t before = 0, far_before = 0;
    std::uint32_t place = 0;  // how many are before it
    std::uint32_t alike = 0;  // an earlier one of this text in another continuation of the same object or array
    Scope opened = 0;
    std::size_t begin = 0, end = 0;  // of an item, in the text
  };
  using Key = std::pair<Scope, std::string_view>;

  static Key key_of(const Entry& entry) { return {entry.opened, entry.text}; }
  bool has(std::uint32_t last, std::uint32_t wanted) const;
  Scope add(Scope scope, std::string text, std::size_t end = 0);

  std::size_t compared_ = 0;  // bytes of items, since clear()
  std::vector<Level> scopes_ = std::vector<Level>(1);
  std::deque<Entry> entries_ = std::deque<Entry>(1);  // 0: none
  std::map<Key, std::uint32_t> by_text_;              // the last entry of each text in an object or array
};

}  // namespace minimind
