#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/text/text_marks.h"

namespace minimind {

// Our own limit on the tokens, and on the merges, of a tokenizer: no model comes near it.
inline constexpr std::size_t most_tokenizer_entries = std::size_t{1} << 20;
inline constexpr std::size_t most_added_bytes = std::size_t{4} << 20;  // of the contents of all added tokens
inline constexpr std::size_t most_ids_around = 256;                    // before a text, and after it

// A token that is cut out of the text before splitting and merging, such as "<|im_start|>".
struct AddedToken {
  std::int32_t id = 0;
  std::string content;
  bool single_word = false;  // matches only without a word character next to it
  bool lstrip = false;       // takes the whitespace before it
  bool rstrip = false;       // takes the whitespace after it
  bool normalized = false;   // matched after the other tokens, in the remaining text
  bool special = false;      // omitted by decoding with skip_special

  bool operator==(const AddedToken&) const = default;
};

// A part of a text: an added token, or text between added tokens.
struct TextPiece {
  std::optional<std::int32_t> id;
  std::string_view text;  // not empty; unused if there is an id
};

// A splitter of texts at added tokens: at the leftmost match, of several the longest. Takes time linear in the text.
class AddedTokenSplitter {
 public:
  // Of the tokens that are `normalized`, or of those that are not. The contents must be distinct and not empty.
  AddedTokenSplitter(const std::vector<AddedToken>& tokens, bool normalized);

  // Calls use(piece) with the pieces of `text`, which must be valid UTF-8. No token matches a marked byte: `marks` are
  // those of a text in which this one is at `offset`.
  void split(std::string_view text, const TextMarks& marks, std::size_t offset,
             const std::function<void(const TextPiece&)>& use) const;

 private:
  // A node of the trie of the contents read backwards. Its path is the end of a content.
  struct Node {
    char byte = 0;                 // the last of the path
    std::uint32_t depth = 0;       // the bytes of the path
    std::uint32_t shorter = 0;     // the node of the longest other path that this path ends with
    std::uint32_t begin = 0, end;  // the children, by byte; of an unfinished node the tokens below it
    std::uint32_t token = 0;       // the number of the longest token that the path ends with, from 1; 0 for none
  };
  std::uint32_t step(std::uint32_t node, char byte) const;

  std::vector<AddedToken> tokens_;        // by content read backwards
  std::vector<Node> nodes_;               // by depth, the root first
  std::array<bool, 256> ends_a_token_{};  // by last byte
};

// Unicode's normal forms, under the names that tokenizers have for them.
enum class NormalForm : std::uint8_t { nfc, nfd, nfkc, nfkd };
inline constexpr std::array<std::string_view, 4> normal_form_names = {"NFC", "NFD", "NFKC", "NFKD"};

constexpr std::string_view name_of(NormalForm form) {
  return normal_form_names[static_cast<std::size_t>(form)];
}
constexpr std::optional<NormalForm> normal_form_of(std::string_view name) {
  for (std::size_t i = 0; i < normal_form_names.size(); ++i) {
    if (name == normal_form_names[i]) return static_cast<NormalForm>(i);
  }
  return std::nullopt;
}

// Brings valid UTF-8 that is at `offset` of the marked text into a form, its marked parts for themselves. Throws Error
// for over 128 combining marks in a row, and in a program that has no tables for it, such as the core.
std::pair<std::string, TextMarks> normalized_parts(std::string_view text, const TextMarks& marks, std::size_t offset,
                                                   NormalForm form);

// A byte-level BPE tokenizer as its file states it; Tokenizer checks it. Tokens and merges are in the byte-level
// spelling (vocabulary.h), added tokens are plain.
struct TokenizerData {
  std::string source;  // the file it came from, for error messages
  std::vector<std::pair<std::string, std::int32_t>> vocab;
  std::vector<std::pair<std::string, std::string>> merges;  // by rank
  std::vector<AddedToken> added_tokens;
  std::optional<NormalForm> normal_form;  // of text outside of added tokens that are not `normalized`
  std::optional<std::string> unk_token;   // represents a byte without a token; if unset, such a byte is omitted
  bool fuse_unk = false;                  // consecutive such bytes are one unk_token
  bool ignore_merges = false;             // a word that is a token is not merged
  bool add_prefix_space = false;          // a space is put before text between added tokens, unless it has one
  bool use_regex = true;                  // text is split by the GPT-2 pattern before merging
  bool truncates = false;                 // the file has a truncation, which is not applied
  std::vector<std::int32_t> before_text;  // ids that the post-processor puts before a text
  std::vector<std::int32_t> after_text;
  std::optional<std::string> bos_token;
  std::optional<std::string> eos_token;
  std::optional<std::string> pad_token;
  std::optional<std::string> config_unk_token;   // unk_token of tokenizer_config.json; written, not used
  std::optional<std::string> chat_template;      // Jinja source
  std::optional<std::string> tool_use_template;  // a separate one for conversations with tools
  std::string chat_template_source;              // the origin of chat_template, for error messages

  bool operator==(const TokenizerData&) const = default;
};

}  // namespace minimind
