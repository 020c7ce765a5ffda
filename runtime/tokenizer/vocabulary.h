#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/tokenizer/tokenizer_data.h"

namespace minimind {

// GPT-2's printable spelling of bytes, in which vocabularies and merges are written: the bytes 21..7E, A1..AC and
// AE..FF represent themselves as code points, the other 68, in order, are U+0100 to U+0143 (a space is U+0120, "Ġ").

// `bytes` in that spelling, as UTF-8.
std::string to_byte_level(std::string_view bytes);

// The bytes that `text` spells; std::nullopt if a character of it is outside the alphabet, or it is not UTF-8.
std::optional<std::string> from_byte_level(std::string_view text);

// The tokens of a tokenizer by id and by text: those of the BPE model and the added ones, which may be among them.
class Vocabulary {
 public:
  // Throws Error, naming source and field, when an id is given twice or is not below 2^20, when an added token is
  // empty or given twice, and when it has another id than Hugging Face gives it: that of the model's token with the
  // same text, or else the next free one. The id in the file is only compared, there and here.
  explicit Vocabulary(const TokenizerData& data);

  // One more than the largest id. Below it there may be ids without a token.
  std::size_t size() const { return tokens_.size(); }

  bool has(std::int32_t id) const { return token(id).exists; }
  bool is_special(std::int32_t id) const { return token(id).special; }

  // The bytes that a token represents and its text as the file spells it; empty if there is no token.
  const std::string& bytes_of(std::int32_t id) const { return token(id).bytes; }
  const std::string& text_of(std::int32_t id) const { return token(id).text; }

  std::optional<std::int32_t> id_of(std::string_view text) const;

  // Only the BPE model's tokens: the ones that merges, unk_token and whole words are looked for in.
  std::optional<std::int32_t> model_id_of(std::string_view text) const;

 private:
  struct Token {
    std::string text;
    std::string bytes;
    bool exists = false;
    bool special = false;
  };

  void add_model_tokens(const TokenizerData& data);
  void add_added_tokens(const TokenizerData& data);
  const Token& token(std::int32_t id) const;
  Token& place(std::int32_t id);

  std::vector<Token> tokens_;  // by id
  std::unordered_map<std::string, std::int32_t> model_ids_;
  std::unordered_map<std::string, std::int32_t> added_ids_;
};

}  // namespace minimind
