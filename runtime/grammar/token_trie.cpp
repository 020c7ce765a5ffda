#include "runtime/grammar/token_trie.h"

#include <algorithm>

namespace minimind {
namespace {

using Texts = std::vector<std::pair<std::string_view, std::int32_t>>;

bool is_of_kind(std::string_view text, TextKind kind) {
  for (std::size_t at = 0; at < text.size();) {
    const auto fits = [&](const std::vector<std::string>& character) {
      if (at + character.size() > text.size()) return false;
      for (std::size_t i = 0; i < character.size(); ++i) {
        if (character[i].find(text[at + i]) == std::string::npos) return false;
      }
      return true;
    };
    const auto& characters = character_bytes_of(kind);
    const auto character = std::find_if(characters.begin(), characters.end(), fits);
    if (character == characters.end()) return false;
    at += character->size();
  }
  return true;
}

TextKind kind_of(std::string_view text) {
  if (is_of_kind(text, TextKind::word)) return TextKind::word;
  return is_of_kind(text, TextKind::plain) ? TextKind::plain : TextKind::other;
}

bool starts_character(char byte) {
  return (static_cast<std::uint8_t>(byte) & 0xC0) != 0x80;
}

TokenTrie::Part trie_of(TextKind kind, const Texts& texts) {
  TokenTrie::Part part;
  part.kind = kind;
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
    part.mask.resize(std::max(part.mask.size(), static_cast<std::size_t>(token) + 1));
    part.mask[static_cast<std::size_t>(token)] = 1;
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

const CodePoints& characters_of(TextKind kind) {
  static const CodePoints word = CodePoints('0', '9').add('A', 'Z').add('a', 'z');
  static const CodePoints plain =
      CodePoints(0x20, last_code_point).without(CodePoints(0x7F, 0x7F).add('"').add('\\').add(0x2028, 0x2029));
  return kind == TextKind::word ? word : plain;
}

const std::vector<std::vector<std::string>>& character_bytes_of(TextKind kind) {
  static const auto bytes_of = [](const CodePoints& characters) {
    std::vector<std::vector<std::string>> result;
    for (const std::vector<ByteSet>& sequence : utf8_sequences(characters)) {
      result.emplace_back();
      for (const ByteSet& set : sequence) {
        result.back().emplace_back();
        for (std::size_t byte = 0; byte < set.size(); ++byte) {
          if (set.test(byte)) result.back().back() += static_cast<char>(byte);
        }
      }
    }
    return result;
  };
  static const auto word = bytes_of(characters_of(TextKind::word)), plain = bytes_of(characters_of(TextKind::plain));
  return kind == TextKind::word ? word : plain;
}

TokenTrie::TokenTrie(Texts texts) {
  std::sort(texts.begin(), texts.end());
  std::array<Texts, text_kinds + 1> by_kind;
  for (const auto& text : texts) {
    by_kind[static_cast<std::size_t>(kind_of(text.first))].push_back(text);
    longest_ = std::max(longest_, text.first.size());
  }
  for (std::size_t kind = 0; kind < parts_.size(); ++kind) {
    parts_[kind] = trie_of(static_cast<TextKind>(kind), by_kind[kind]);
  }
}

}  // namespace minimind
