#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace minimind {

// A token that is cut out of the text before it is split and merged, such as "<|im_start|>".
struct AddedToken {
  std::int32_t id = 0;
  std::string content;
  bool single_word = false;  // matches only where no word character stands next to it
  bool lstrip = false;       // takes the whitespace before it
  bool rstrip = false;       // takes the whitespace after it
  bool normalized = false;   // is looked for after those that are not, in what they leave
  bool special = false;      // is omitted when decoding with skip_special

  bool operator==(const AddedToken&) const = default;
};

// A part of a text: an added token, or text between added tokens.
struct TextPiece {
  std::optional<std::int32_t> id;
  std::string_view text;  // not empty; meaningless where there is an id
};

// Cuts texts at added tokens: at the leftmost match, the longest there.
class AddedTokenSplitter {
 public:
  // The contents are distinct and not empty.
  explicit AddedTokenSplitter(std::vector<AddedToken> tokens);

  // Appends the pieces of `text`, which is valid UTF-8, to `pieces`.
  void split(std::string_view text, std::vector<TextPiece>& pieces) const;

 private:
  const AddedToken* longest_at(std::string_view text) const;

  std::vector<AddedToken> tokens_;          // by content
  std::array<bool, 256> begins_a_token_{};  // by first byte
};

// A byte-level BPE tokenizer as a file states it; Tokenizer checks that it makes sense. Texts of tokens and merges are
// in the byte-level spelling (vocabulary.h), those of added tokens are plain.
struct TokenizerData {
  std::string source;  // the file it came from, for error messages
  std::vector<std::pair<std::string, std::int32_t>> vocab;
  std::vector<std::pair<std::string, std::string>> merges;  // by rank
  std::vector<AddedToken> added_tokens;
  std::optional<std::string> unk_token;   // represents a byte without a token; without it such a byte is omitted
  bool fuse_unk = false;                  // a row of such bytes is one unk_token
  bool ignore_merges = false;             // a word that is a token is not merged
  bool add_prefix_space = false;          // text between added tokens starts with a space, given one if need be
  bool use_regex = true;                  // text is split by the GPT-2 pattern before merging
  std::vector<std::int32_t> before_text;  // ids that its post-processor puts before a text, and after it
  std::vector<std::int32_t> after_text;
  std::optional<std::string> bos_token;
  std::optional<std::string> eos_token;
  std::optional<std::string> pad_token;
  std::optional<std::string> config_unk_token;   // what tokenizer_config.json calls unk_token; written again, not used
  std::optional<std::string> chat_template;      // Jinja source
  std::optional<std::string> tool_use_template;  // the one for conversations with tools, where that is another
  std::string chat_template_source;              // where chat_template is from, for error messages

  bool operator==(const TokenizerData&) const = default;
};

// The text of a token as the file spells it; std::nullopt if there is none of this id.
std::optional<std::string> token_text(const TokenizerData& data, std::int32_t id);

// Whether the ids that a post-processor adds are just the token `name`, such as bos_token.
bool is_just(const TokenizerData& data, const std::vector<std::int32_t>& ids, const std::optional<std::string>& name);

}  // namespace minimind
