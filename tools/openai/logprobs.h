#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "runtime/chat/chat_json.h"
#include "runtime/generate/generate.h"
#include "runtime/text/utf8.h"
#include "runtime/tokenizer/tokenizer.h"

namespace minimind {

// Assigns the tokens of a text to its pieces. A token belongs to the piece that has its first byte. Tokens after a stop
// string, which is no part of the text, belong to none.
class TokenPieces {
 public:
  // Both must outlive this.
  TokenPieces(const Tokenizer& tokenizer, const std::vector<std::int32_t>& text_tokens)
      : tokenizer_(tokenizer), text_tokens_(text_tokens) {}

  // Returns the scores, of all tokens so far, of those that are not yet taken and start within the first `bytes` of the
  // text.
  std::span<const TokenScore> take(std::span<const TokenScore> scores, std::size_t bytes);

  // Returns the rest at the end of a text of `bytes`.
  std::span<const TokenScore> take_rest(std::span<const TokenScore> scores, std::size_t bytes);

  // Whether the token is part of a text.
  bool is_text(std::int32_t token) const;

 private:
  void read(std::span<const TokenScore> scores);

  const Tokenizer& tokenizer_;
  const std::vector<std::int32_t>& text_tokens_;
  Utf8Stream utf8_;
  std::vector<std::size_t> starts_;  // of the tokens read, in the text
  std::size_t end_ = 0;              // of the last token read
  std::size_t taken_ = 0;
};

// How lists of log-probabilities name tokens: by their text, or as vLLM's "token_id:5".
enum class TokenNames { texts, ids };

// OpenAI's logprobs of a chat's choice, with a written list. Tokens that are not text, such as the end token, are
// omitted unless they are named by ids.
ChatJson chat_logprobs(const Tokenizer& tokenizer, const TokenPieces& pieces, std::span<const TokenScore> scores,
                       TokenNames names = TokenNames::texts);

// OpenAI's older logprobs of a completion's choice: lists of tokens, their log-probabilities, those of alternatives and
// the token itself, and offsets in characters.
class CompletionLogprobs {
 public:
  // `offset` is that of the first token, in characters.
  explicit CompletionLogprobs(const Tokenizer& tokenizer, TokenNames names = TokenNames::texts, std::size_t offset = 0)
      : tokenizer_(tokenizer), names_(names), offset_(offset) {}

  // Adds the tokens of a prompt; the first one has no log-probability.
  void add_prompt(std::int32_t first, std::span<const TokenScore> others);
  void add(std::span<const TokenScore> scores);

  // Returns the written lists and starts new ones, which continue the text.
  ChatJson take();

 private:
  void add_token(std::int32_t token);

  const Tokenizer& tokenizer_;
  TokenNames names_;
  std::size_t offset_;
  Utf8Stream utf8_;
  WrittenList tokens_, token_logprobs_, top_logprobs_, text_offset_;
};

}  // namespace minimind
