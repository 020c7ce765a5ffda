#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/tokenizer/added_tokens.h"

namespace minimind {

// A byte-level BPE tokenizer as a file states it; Tokenizer checks that it makes sense. Texts of tokens and merges are
// in the byte-level spelling (byte_level.h), those of added tokens are plain.
struct TokenizerData {
  std::string source;  // the file it came from, for error messages
  std::vector<std::pair<std::string, std::int32_t>> vocab;
  std::vector<std::pair<std::string, std::string>> merges;  // by rank
  std::vector<AddedToken> added_tokens;
  std::optional<std::string> unk_token;   // stands for a byte without a token; without it such a byte is left out
  bool fuse_unk = false;                  // a row of such bytes is one unk_token
  bool ignore_merges = false;             // a word that is a token is not merged
  bool add_prefix_space = false;          // text between added tokens begins with a space, given one if need be
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
