#include "runtime/grammar/token_trie.h"

#include <algorithm>

namespace minimind {
namespace {

using Texts = std::vector<std::pair<std::string_view, std::int32_t>>;

bool is_plain(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto fits = [&](const std::vector<std::string>& character) {
      if (at + character.size() > text.size()) return false;
      for (std::size_t i = 0; i < character.size(); ++i) {
        if (character[i].find(text[at + i]) == std::string::npos) return false;
      }
      return true;
    };
    const auto& characters = TokenTrie::plain_characters();
    const auto character = std::find_if(characters.begin(), characters.end(), fits);
    if (character == characters.end()) return false;
    at += character->size();
  }
  return true;
}

bool starts_character(char byte) {
  return (static_cast<std::uint8_t>(byte) & 0xC0) != 0x80;
}

TokenTrie::Part trie_of(const Texts& texts) {
  TokenTrie::Part part;
  std::vector<TokenTrie::Node>& nodes = part.nodes;
  std::vector<std::uint32_t> path;  // the nodes of the previous text
  std::string_view before;
  const auto close = [&](std::size_t depth) {
    for (; path.size() > depth; path.pop_back()) nodes[path.back()].after = static_cast<std::uint32_t>(nodes.size());
  };
  for (const auto& [text, token] : texts) {
    const auto shared = std::mismatch(text.begin(), text.end(), before.begin(), before.end()).first - text.begin();
    close(static_cast<std::size_t>(shared));
    for (std::size_t i = path.size(); i < text.size(); ++i) {
      path.push_back(static_cast<std::uint32_t>(nodes.size()));
      nodes.push_back({static_cast<std::uint8_t>(text[i]), 0, static_cast<std::uint32_t>(i + 1), 0,
                       static_cast<std::uint32_t>(part.tokens.size()), 0});
    }
    ++nodes[path.back()].token_count;
    part.tokens.push_back(token);
    std::uint16_t height = 0;
    for (std::size_t i = text.size(); i-- > 0;) {
      nodes[path[i]].height = std::max(nodes[path[i]].height, height);
      if (starts_character(text[i])) ++height;
    }
    part.height = std::max(part.height, height);
    before = text;
  }
  close(0);
  return part;
}

}  // namespace

const CodePoints& TokenTrie::plain_code_points() {
  static const CodePoints plain =
      CodePoints(0x20, last_code_point).without(CodePoints(0x7F, 0x7F).add('"').add('\\').add(0x2028, 0x2029));
  return plain;
}

const std::vector<std::vector<std::string>>& TokenTrie::plain_characters() {
  static const auto characters = [] {
    std::vector<std::vector<std::string>> result;
    for (const std::vector<ByteSet>& sequence : utf8_sequences(plain_code_points())) {
      result.emplace_back();
      for (const ByteSet& set : sequence) {
        result.back().emplace_back();
        for (std::size_t byte = 0; byte < set.size(); ++byte) {
          if (set.test(byte)) result.back().back() += static_cast<char>(byte);
        }
      }
    }
    return result;
  }();
  return characters;
}

TokenTrie::TokenTrie(Texts texts) {
  std::sort(texts.begin(), texts.end());
  Texts plain, rest;
  for (const auto& text : texts) {
    (is_plain(text.first) ? plain : rest).push_back(text);
    longest_ = std::max(longest_, text.first.size());
  }
  plain_ = trie_of(plain);
  rest_ = trie_of(rest);
}

}  // namespace minimind
