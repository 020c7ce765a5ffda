#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tokenizer/bpe.h"
#include "runtime/tokenizer/tokenizer_data.h"
#include "runtime/tokenizer/vocabulary.h"

namespace minimind {

// A byte-level BPE tokenizer with the ids and the text of Hugging Face `tokenizers` (checked against 0.23.3).
// Immutable: any number of threads may use it.
class Tokenizer {
 public:
  // Throws Error, naming source and field, as Vocabulary does. Also throws Error if a merge, unk_token, bos_token,
  // eos_token, pad_token or the post-processor refers to an unknown token.
  explicit Tokenizer(const TokenizerData& data);

  // Returns the file of the tokenizer, for messages.
  const std::string& source() const { return source_; }

  // Encodes text. Bytes that are not UTF-8 are encoded as the U+FFFD that represent them. As in Hugging Face, a byte
  // without a token is omitted if the file has no unk_token; MiniMind's vocabularies have all 256 bytes.
  // Marked bytes are ordinary text: they are part of no added token, whatever they spell.
  std::vector<std::int32_t> encode(std::string_view text, const TextMarks& marks = {}) const;

  // Returns the ids of a text with the post-processor's tokens around it, as transformers does unless
  // add_special_tokens is False. MiniMind's own post-processors add nothing.
  std::vector<std::int32_t> encode_with_special(std::string_view text, const TextMarks& marks = {}) const;

  // Returns the ids of a prompt as MiniMind's scripts continue a text, tokenizer(bos_token + text): bos_token is added
  // if there is one and the text does not start with it.
  std::vector<std::int32_t> encode_prompt(std::string_view text) const;

  // The post-processor's ids before a text, and after it.
  const std::vector<std::int32_t>& before_text() const { return before_text_; }
  const std::vector<std::int32_t>& after_text() const { return after_text_; }

  // Whether the file asks for truncated texts. They are not, as in transformers unless a call requests it.
  bool truncates() const { return truncates_; }

  // Decodes ids. Ids without a token are omitted, as in Hugging Face: has() detects them. Bytes that do not form a
  // character become U+FFFD.
  std::string decode(std::span<const std::int32_t> ids, bool skip_special) const;

  bool has(std::int32_t id) const { return vocabulary_.has(id); }
  bool is_special(std::int32_t id) const { return vocabulary_.is_special(id); }
  bool is_added(std::int32_t id) const { return vocabulary_.is_added(id); }

  // Returns the bytes that a token represents, empty if the token does not exist. They may end inside a character: see
  // Utf8Stream. A token with a character outside the byte-level alphabet represents its own UTF-8.
  std::string_view token_bytes(std::int32_t id) const { return vocabulary_.bytes_of(id); }

  // Returns the token's spelling in the file, such as "Ġthe"; empty if the token does not exist.
  const std::string& token_text(std::int32_t id) const { return vocabulary_.text_of(id); }

  std::optional<std::int32_t> id_of(std::string_view token_text) const { return vocabulary_.id_of(token_text); }

  // The largest id plus 1. Smaller ids may have no token.
  std::size_t vocab_size() const { return vocabulary_.size(); }

  std::optional<std::int32_t> bos_id() const { return bos_id_; }
  std::optional<std::int32_t> eos_id() const { return eos_id_; }
  std::optional<std::int32_t> pad_id() const { return pad_id_; }
  const std::optional<std::string>& chat_template() const { return chat_template_; }

 private:
  // How text outside of added tokens becomes ids: `unmarked` as in Hugging Face, of which a word of the model may be an
  // added token, `marked` without added tokens.
  enum class Words { unmarked, marked };
  void encode_text(std::string_view text, Words words, std::vector<std::int32_t>& ids) const;
  void encode_word(std::string_view word, Words words, std::vector<std::int32_t>& ids) const;
  std::vector<std::int32_t> symbols_of(std::string_view word) const;

  std::string source_;
  Vocabulary vocabulary_;
  std::array<std::optional<std::int32_t>, 256> byte_ids_;
  std::optional<std::int32_t> unk_id_;
  AddedTokenSplitter literal_;     // added tokens that are matched first
  AddedTokenSplitter normalized_;  // added tokens that are matched in the remaining text
  Bpe bpe_;
  std::optional<NormalForm> normal_form_;
  bool fuse_unk_, ignore_merges_, add_prefix_space_, use_regex_, truncates_;
  std::vector<std::int32_t> before_text_, after_text_;
  std::optional<std::int32_t> bos_id_, eos_id_, pad_id_;
  std::optional<std::string> chat_template_;
};

}  // namespace minimind
