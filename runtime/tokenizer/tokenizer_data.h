#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/text/text_marks.h"

namespace minimind {

// Our own limit on the tokens, and on the merges, of a tokenizer: no model comes near it.
inline constexpr std::size_t most_tokenizer_entries = std::size_t{1} << 20;

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

// A splitter of texts at added tokens: at the leftmost match, of several the longest.
class AddedTokenSplitter {
 public:
  // The contents must be distinct and not empty.
  explicit AddedTokenSplitter(std::vector<AddedToken> tokens);

  // Appends the pieces of `text`, which must be valid UTF-8, to `pieces`. No token matches a marked byte: `marks` are
  // those of a text in which this one is at `offset`.
  void split(std::string_view text, std::vector<TextPiece>& pieces, const TextMarks& marks = {},
             std::size_t offset = 0) const;

 private:
  const AddedToken* longest_at(std::string_view text) const;

  std::vector<AddedToken> tokens_;          // by content
  std::array<bool, 256> begins_a_token_{};  // by first byte
};

// A byte-level BPE tokenizer as its file states it; Tokenizer checks it. Tokens and merges are in the byte-level
// spelling (vocabulary.h), added tokens are plain.
struct TokenizerData {
  std::string source;  // the file it came from, for error messages
  std::vector<std::pair<std::string, std::int32_t>> vocab;
  std::vector<std::pair<std::string, std::string>> merges;  // by rank
  std::vector<AddedToken> added_tokens;
  std::optional<std::string> unk_token;   // represents a byte without a token; if unset, such a byte is omitted
  bool fuse_unk = false;                  // consecutive such bytes are one unk_token
  bool ignore_merges = false;             // a word that is a token is not merged
  bool add_prefix_space = false;          // a space is put before text between added tokens, unless it has one
  bool use_regex = true;                  // text is split by the GPT-2 pattern before merging
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
