#include "runtime/grammar/token_trie.h"

#include <algorithm>

namespace minimind {

TokenTrie::TokenTrie(std::vector<std::pair<std::string_view, std::int32_t>> texts) {
  std::sort(texts.begin(), texts.end());
  std::vector<std::uint32_t> path;  // the nodes of the text before
  std::string_view before;
  const auto close = [&](std::size_t depth) {
    for (; path.size() > depth; path.pop_back()) nodes[path.back()].after = static_cast<std::uint32_t>(nodes.size());
  };
  for (const auto& [text, token] : texts) {
    const auto shared = std::mismatch(text.begin(), text.end(), before.begin(), before.end()).first - text.begin();
    close(static_cast<std::size_t>(shared));
    for (std::size_t i = path.size(); i < text.size(); ++i) {
      path.push_back(static_cast<std::uint32_t>(nodes.size()));
      nodes.push_back({static_cast<std::uint8_t>(text[i]), static_cast<std::uint32_t>(i + 1), 0,
                       static_cast<std::uint32_t>(tokens.size()), 0});
    }
    ++nodes[path.back()].token_count;
    tokens.push_back(token);
    longest = std::max(longest, text.size());
    before = text;
  }
  close(0);
}

}  // namespace minimind
