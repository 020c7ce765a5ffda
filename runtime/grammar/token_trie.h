#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/text/code_points.h"

namespace minimind {

// Texts that grammars usually take either all of or few of, inside a string.
enum class TextKind : std::uint8_t {
  lower,  // a-z, digits
  word,   // ASCII letters and digits
  plain,  // whole characters, none of them a quote, a backslash, a control or an end of a line
  cut,    // plain, and the start of one more such character
  other,
};
constexpr std::size_t text_kinds = 3;  // of whole characters
const CodePoints& characters_of(TextKind kind);
// The characters as bytes: for each of a few sets, those that may come first, second and so on.
const std::vector<std::vector<std::string>>& character_bytes_of(TextKind kind);

// A set of tokens: bit id % 64 of the element id / 64.
using TokenBits = std::vector<std::uint64_t>;
constexpr std::size_t token_words(std::size_t tokens) {
  return (tokens + 63) / 64;
}
inline void add_token(std::uint64_t* bits, std::int32_t id) {
  bits[static_cast<std::uint32_t>(id) / 64] |= std::uint64_t{1} << static_cast<std::uint32_t>(id) % 64;
}
inline void remove_token(std::uint64_t* bits, std::int32_t id) {
  bits[static_cast<std::uint32_t>(id) / 64] &= ~(std::uint64_t{1} << static_cast<std::uint32_t>(id) % 64);
}

// A bit for plain characters of this first byte, which some share.
constexpr std::uint32_t class_of(std::uint8_t byte) {
  if (byte >= 0x80) return 1;
  if (byte >= 'a' && byte <= 'z') return 2;
  if (byte >= 'A' && byte <= 'Z') return 4;
  if (byte >= '0' && byte <= '9') return 8;
  return 16U << byte % 27;
}
constexpr std::uint32_t all_classes = 0x7FFFFFFF;

// The texts of tokens as tries, so that texts with a common prefix share its work. Most tokens are words or plain.
// Each kind has a separate trie, of which a whole branch is allowed at once if its state takes any such text.
class TokenTrie {
 public:
  // In depth-first order, so that one pass visits every text: a node, then its children.
  struct Node {
    std::uint8_t byte;
    bool starts_character;
    std::uint16_t height;       // the most characters that begin after it; 65,535: perhaps more
    std::uint32_t classes;      // class_of() of the characters that begin here and in its descendants
    std::uint32_t depth;        // 1 for the first byte of a text
    std::uint32_t after;        // the first node after this node's descendants
    std::uint32_t first_token;  // in `tokens`; those of the descendants follow
    std::uint32_t token_count;  // of the tokens that end here
  };
  struct Part {
    TextKind kind;
    std::vector<Node> nodes;
    std::vector<std::int32_t> tokens;
    std::array<std::uint32_t, 257> first{};  // by byte, the first node of those texts; they end where the next start
    std::uint32_t height = 0;                // the most characters of a text
    // Of this part and those before it, whose texts are of this kind, too.
    std::uint32_t height_so_far = 0;
    TokenBits mask;  // of the tokens
    // The tokens by their number of characters: those of at most n are the first of_length[n].
    std::vector<std::int32_t> by_length;
    std::vector<std::size_t> of_length;  // [height + 1]
  };

  // Texts must not be empty; several tokens may have equal texts.
  explicit TokenTrie(std::vector<std::pair<std::string_view, std::int32_t>> texts);

  using Parts = std::array<Part, text_kinds + 2>;
  const Parts& parts() const { return parts_; }
  std::size_t longest() const { return longest_; }  // bytes in the longest text

 private:
  Parts parts_;
  std::size_t longest_ = 0;
};

}  // namespace minimind
