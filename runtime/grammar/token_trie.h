#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace minimind {

// Texts of tokens by their beginnings, laid out so that one pass over it visits every text: a node, then its children.
struct TokenTrie {
  struct Node {
    std::uint8_t byte;
    std::uint32_t depth;        // 1 for the first byte of a text
    std::uint32_t after;        // the node that follows what begins with this one
    std::uint32_t first_token;  // in `tokens`
    std::uint32_t token_count;  // of the tokens that end here
  };

  // Texts are not empty; several tokens may have the same.
  explicit TokenTrie(std::vector<std::pair<std::string_view, std::int32_t>> texts);

  std::vector<Node> nodes;
  std::vector<std::int32_t> tokens;
  std::size_t longest = 0;  // bytes in the longest text
};

}  // namespace minimind
