#include "runtime/grammar/token_trie.h"

#include <algorithm>

#include "weights/base/text.h"

namespace minimind {
namespace {

using Texts = std::vector<std::pair<std::string_view, std::int32_t>>;

bool is_of_kind(std::string_view text, TextKind kind) {
  const bool may_be_cut = kind == TextKind::cut;
  for (std::size_t at = 0; at < text.size();) {
    const auto fits = [&](const std::vector<std::string>& character) {
      const std::size_t size = std::min(character.size(), text.size() - at);
      if (size < character.size() && !may_be_cut) return false;
      for (std::size_t i = 0; i < size; ++i) {
        if (character[i].find(text[at + i]) == std::string::npos) return false;
      }
      return true;
    };
    const auto& characters = character_bytes_of(may_be_cut ? TextKind::plain : kind);
    const auto character = std::find_if(characters.begin(), characters.end(), fits);
    if (character == characters.end()) return false;
    at += character->size();
  }
  return true;
}

TextKind kind_of(std::string_view text) {
  for (const TextKind kind : {TextKind::lower, TextKind::word, TextKind::plain, TextKind::cut}) {
    if (is_of_kind(text, kind)) return kind;
  }
  return TextKind::other;
}

void sort_by_length(TokenTrie::Part& part, const Texts& texts) {
  std::vector<std::vector<std::int32_t>> tokens(std::size_t{part.height} + 1);
  for (const auto& [text, token] : texts) tokens[count_characters(text)].push_back(token);
  for (const std::vector<std::int32_t>& of_this : tokens) {
    part.by_length.insert(part.by_length.end(), of_this.begin(), of_this.end());
    part.of_length.push_back(part.by_length.size());
  }
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
      nodes.push_back({static_cast<std::uint8_t>(text[i]), starts_character(text[i]), 0, 0,
                       static_cast<std::uint32_t>(i + 1), 0, static_cast<std::uint32_t>(part.tokens.size()), 0});
    }
    ++nodes[path.back()].token_count;
    part.tokens.push_back(token);
    part.mask.resize(std::max(part.mask.size(), token_words(static_cast<std::size_t>(token) + 1)));
    add_token(part.mask.data(), token);
    std::uint32_t height = 0, classes = 0;
    for (std::size_t i = text.size(); i-- > 0;) {
      TokenTrie::Node& node = nodes[path[i]];
      node.height = static_cast<std::uint16_t>(std::clamp<std::uint32_t>(height, node.height, 0xFFFF));
      if (node.starts_character) {
        ++height;
        classes |= class_of(node.byte);
      }
      node.classes |= classes;
    }
    part.height = std::max(part.height, height);
    before = text;
  }
  close(0);
  part.first.fill(static_cast<std::uint32_t>(nodes.size()));
  std::size_t byte = 0;
  for (std::uint32_t i = 0; i < nodes.size(); i = nodes[i].after) {
    while (byte <= nodes[i].byte) part.first[byte++] = i;
  }
  sort_by_length(part, texts);
  return part;
}

}  // namespace

const CodePoints& characters_of(TextKind kind) {
  static const CodePoints lower = CodePoints('0', '9').add('a', 'z'), word = CodePoints(lower).add('A', 'Z');
  static const CodePoints plain =
      CodePoints(0x20, last_code_point).without(CodePoints(0x7F, 0x7F).add('"').add('\\').add(0x2028, 0x2029));
  static const std::array<const CodePoints*, text_kinds> all{&lower, &word, &plain};
  return *all[static_cast<std::size_t>(kind)];
}

const std::vector<std::vector<std::string>>& character_bytes_of(TextKind kind) {
  using Characters = std::vector<std::vector<std::string>>;
  static const auto bytes_of = [](TextKind of) {
    Characters result;
    for (const std::vector<ByteSet>& sequence : utf8_sequences(characters_of(of))) {
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
  static const std::array<Characters, text_kinds> all{bytes_of(TextKind::lower), bytes_of(TextKind::word),
                                                      bytes_of(TextKind::plain)};
  return all[static_cast<std::size_t>(kind)];
}

TokenTrie::TokenTrie(Texts texts) {
  std::sort(texts.begin(), texts.end());
  std::array<Texts, std::tuple_size_v<Parts>> by_kind;
  for (const auto& text : texts) {
    by_kind[static_cast<std::size_t>(kind_of(text.first))].push_back(text);
    longest_ = std::max(longest_, text.first.size());
  }
  for (std::size_t kind = 0; kind < parts_.size(); ++kind) {
    Part& part = parts_[kind] = trie_of(static_cast<TextKind>(kind), by_kind[kind]);
    part.height_so_far = part.height;
    if (kind == 0) continue;
    const Part& before = parts_[kind - 1];
    part.height_so_far = std::max(part.height, before.height_so_far);
    part.mask.resize(std::max(part.mask.size(), before.mask.size()));
    for (std::size_t word = 0; word < before.mask.size(); ++word) part.mask[word] |= before.mask[word];
  }
}

}  // namespace minimind
