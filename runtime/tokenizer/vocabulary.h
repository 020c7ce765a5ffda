#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tokenizer/tokenizer_data.h"

namespace minimind {

// GPT-2's printable spelling of bytes, used in vocabularies and merges: the bytes 21..7E, A1..AC and AE..FF represent
// themselves as code points. The other 68, in order, are U+0100 to U+0143 (a space is U+0120, "Ġ").

// Returns `bytes` in that spelling, as UTF-8.
std::string to_byte_level(std::string_view bytes);

// Returns the bytes that `text` spells; std::nullopt if a character is outside the alphabet or `text` is not UTF-8.
std::optional<std::string> from_byte_level(std::string_view text);

// A hash of texts whose parameter is of this run, so that no file can choose texts with equal hashes.
struct TextHash {
  std::size_t operator()(std::string_view text) const;
};

// The tokens of a tokenizer by id and by text: those of the BPE model and the added tokens, which may be among them.
class Vocabulary {
 public:
  // Throws Error, naming source and field, if an id is repeated or is not below 2^20, if added tokens are empty,
  // repeated or over most_added_bytes together, or if an added token's id differs from Hugging Face's: that of the
  // model's token with equal text, or else the next free id. Both only compare the id in the file.
  explicit Vocabulary(const TokenizerData& data);

  // The largest id plus 1. Smaller ids may have no token.
  std::size_t size() const { return tokens_.size(); }

  bool has(std::int32_t id) const { return token(id).exists; }
  bool is_special(std::int32_t id) const { return token(id).special; }
  bool is_added(std::int32_t id) const { return token(id).added; }

  // The bytes that a token represents and its spelling in the file; empty if the token does not exist.
  const std::string& bytes_of(std::int32_t id) const { return token(id).bytes; }
  const std::string& text_of(std::int32_t id) const { return token(id).text; }

  std::optional<std::int32_t> id_of(std::string_view text) const;

  // Only the BPE model's tokens, in which merges, unk_token and whole words are looked up.
  std::optional<std::int32_t> model_id_of(std::string_view text) const;

 private:
  struct Token {
    std::string text;
    std::string bytes;
    bool exists = false;
    bool of_model = false;
    bool special = false;
    bool added = false;
  };

  void add_model_tokens(const TokenizerData& data);
  void add_added_tokens(const TokenizerData& data);
  const Token& token(std::int32_t id) const;
  Token& place(std::int32_t id);

  // Returns the position in slots_ of the token with this text, or of the free slot where it belongs.
  std::size_t slot_of(std::string_view text) const;

  std::vector<Token> tokens_;        // by id
  std::vector<std::int32_t> slots_;  // ids by the hash of their texts; no_id in free ones, at least half of all
};

}  // namespace minimind
