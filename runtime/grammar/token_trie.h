#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/grammar/code_points.h"

namespace minimind {

// The texts of tokens as tries, so that texts with a common beginning share its work.
//
// Most tokens are plain: whole characters, none of them a quote, a backslash, a control or an end of a line. Grammars usually
// take either all of them, inside a string, or few. They have a trie of their own, of which a whole branch is allowed
// at once if its state takes any plain text.
class TokenTrie {
 public:
  // In depth-first order, so that one pass visits every text: a node, then its children.
  struct Node {
    std::uint8_t byte;
    std::uint16_t height;       // the most characters that begin after it
    std::uint32_t depth;        // 1 for the first byte of a text
    std::uint32_t after;        // the first node after this node's descendants
    std::uint32_t first_token;  // in `tokens`; those of the descendants follow
    std::uint32_t token_count;  // of the tokens that end here
  };
  struct Part {
    std::vector<Node> nodes;
    std::vector<std::int32_t> tokens;
    std::uint16_t height = 0;  // the most characters of a text
  };

  // Texts must not be empty; several tokens may have equal texts.
  explicit TokenTrie(std::vector<std::pair<std::string_view, std::int32_t>> texts);

  const Part& plain() const { return plain_; }
  const Part& rest() const { return rest_; }
  std::size_t longest() const { return longest_; }  // bytes in the longest text

  // The characters of plain texts, and as bytes: for each kind, those that may come first, second and so on.
  static const CodePoints& plain_code_points();
  static const std::vector<std::vector<std::string>>& plain_characters();

 private:
  Part plain_, rest_;
  std::size_t longest_ = 0;
};

}  // namespace minimind
