#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/grammar/code_points.h"
#include "runtime/grammar/token_trie.h"

namespace minimind {

// What a byte means for names and items that must not be repeated, wherever the reading of a text does not matter for
// it. A name that its object has already is never allowed.
enum class JsonEvent : std::uint8_t {
  none,
  object_opens,
  object_closes,
  name_opens,
  name_closes,
  array_opens,
  item_ends,
  array_closes,
};

// Rules of a grammar that are made when a text first needs them, because together they would be too many. They are
// numbered from 0 in the order in which they are first mentioned.
class GrammarRules {
 public:
  // Texts of a kind with so many characters, after which the shortest rest of the whole text is longer by at most so
  // many bytes.
  struct TextRun {
    static constexpr std::uint16_t any = 0xFFFF;  // any number of characters
    std::uint16_t characters = 0;
    std::uint32_t bytes = 0;
  };
  struct Symbol {
    bool is_rule = false;
    std::uint32_t rule = 0;
    ByteSet bytes;
    JsonEvent event = JsonEvent::none;  // of each of the bytes
    bool distinct = false;              // the item that ends here must differ from those before it
    // If first in an alternative: the texts that the rule takes, whatever they are.
    std::array<TextRun, text_kinds> runs{};
  };
  using Sequence = std::vector<Symbol>;

  struct Facts {
    bool nullable = false;           // derives the empty text
    std::uint32_t rank = 0;          // more than that of every rule that can start with this one
    std::uint64_t bytes_to_end = 0;  // of its shortest text
  };

  virtual ~GrammarRules() = default;
  virtual std::uint32_t root() = 0;
  virtual Facts facts(std::uint32_t rule) = 0;
  // Throws Error if the rule cannot be made.
  virtual std::vector<Sequence> alternatives(std::uint32_t rule) = 0;
};

// What the rules of several texts are made from. Any number of threads may use it.
class GrammarRulesSource {
 public:
  virtual ~GrammarRulesSource() = default;
  virtual std::unique_ptr<GrammarRules> start() const = 0;
};

}  // namespace minimind
