#include "tools/openai/logprobs.h"

#include <fmt/core.h>

#include <algorithm>

#include "runtime/text/code_points.h"

namespace minimind {
namespace {

std::string token_id_name(std::int32_t token) {
  return fmt::format("token_id:{}", token);
}

// The name of a token in the older form: of bytes that are not UTF-8 as OpenAI writes them, so that no two tokens are
// alike.
std::string spelled(const Tokenizer& tokenizer, std::int32_t token, TokenNames names) {
  if (names == TokenNames::ids) return token_id_name(token);
  const std::string_view bytes = tokenizer.token_bytes(token);
  if (is_utf8(bytes)) return std::string(bytes);
  std::string text = "bytes:";
  for (const char c : bytes) text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return text;
}

// A chat may have twenty for each token of its text: no list of pairs is copied.
ChatJson chat_token(const Tokenizer& tokenizer, const ScoredToken& token, TokenNames names) {
  const std::string_view bytes = tokenizer.token_bytes(token.token);
  const auto unsigned_bytes = std::span(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  ChatJson::object_t json;
  json.reserve(5);  // with its alternatives
  json.emplace("token", names == TokenNames::ids ? token_id_name(token.token) : to_utf8_lossy(bytes));
  json.emplace("logprob", token.log_probability);
  json.emplace("bytes", ChatJson::array_t(unsigned_bytes.begin(), unsigned_bytes.end()));
  json.emplace("token_id", token.token);  // Mistral's
  return json;
}

}  // namespace

bool TokenPieces::is_text(std::int32_t token) const {
  return !tokenizer_.is_special(token) || std::ranges::find(text_tokens_, token) != text_tokens_.end();
}

void TokenPieces::read(std::span<const TokenScore> scores) {
  while (starts_.size() < scores.size()) {
    const std::int32_t token = scores[starts_.size()].token.token;
    starts_.push_back(end_);
    if (is_text(token)) end_ += utf8_.push(tokenizer_.token_bytes(token)).size();
  }
}

std::span<const TokenScore> TokenPieces::take(std::span<const TokenScore> scores, std::size_t bytes) {
  read(scores);
  const std::size_t first = taken_;
  while (taken_ < scores.size() && starts_[taken_] < bytes) ++taken_;
  return scores.subspan(first, taken_ - first);
}

std::span<const TokenScore> TokenPieces::take_rest(std::span<const TokenScore> scores, std::size_t bytes) {
  read(scores);
  const bool was_cut = end_ > bytes;
  return take(scores, was_cut ? bytes : end_ + 1);
}

ChatJson chat_logprobs(const Tokenizer& tokenizer, const TokenPieces& pieces, std::span<const TokenScore> scores,
                       TokenNames names) {
  WrittenList content;
  for (const TokenScore& score : scores) {
    if (names == TokenNames::texts && !pieces.is_text(score.token.token)) continue;
    ChatJson token = chat_token(tokenizer, score.token, names);
    token["top_logprobs"] = ChatJson::array();
    for (const ScoredToken& other : score.top) token["top_logprobs"].push_back(chat_token(tokenizer, other, names));
    content.push_back(token);
  }
  return {{"content", content.take()}, {"refusal", nullptr}};
}

void CompletionLogprobs::add_token(std::int32_t token) {
  tokens_.push_back(spelled(tokenizer_, token, names_));
  text_offset_.push_back(offset_);
  offset_ += count_characters(utf8_.push(tokenizer_.token_bytes(token)));
}

void CompletionLogprobs::add_prompt(std::int32_t first, std::span<const TokenScore> others) {
  add_token(first);
  token_logprobs_.push_back(nullptr);
  top_logprobs_.push_back(nullptr);
  add(others);
}

void CompletionLogprobs::add(std::span<const TokenScore> scores) {
  for (const TokenScore& score : scores) {
    add_token(score.token.token);
    token_logprobs_.push_back(score.token.log_probability);
    ChatJson top = ChatJson::object();
    const auto add_alternative = [&](const ScoredToken& token) {
      top.emplace(spelled(tokenizer_, token.token, names_), token.log_probability);
    };
    std::ranges::for_each(score.top, add_alternative);
    add_alternative(score.token);
    top_logprobs_.push_back(top);
  }
}

ChatJson CompletionLogprobs::take() {
  return {{"tokens", tokens_.take()},
          {"token_logprobs", token_logprobs_.take()},
          {"top_logprobs", top_logprobs_.take()},
          {"text_offset", text_offset_.take()}};
}

}  // namespace minimind
