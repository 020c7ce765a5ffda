#include "runtime/tokenizer/vocabulary.h"

#include <fmt/core.h>

#include <algorithm>

#include "runtime/tokenizer/byte_level.h"
#include "weights/io/error.h"
#include "weights/io/quote.h"

namespace minimind {
namespace {

// Far above any vocabulary in use (262,144 in Gemma 3), far below what a hostile file could make us allocate.
constexpr std::int32_t max_vocab_size = 1 << 20;

using IdOfText = std::unordered_map<std::string, std::int32_t>;

std::optional<std::int32_t> find_id(const IdOfText& ids, std::string_view text) {
  const auto found = ids.find(std::string(text));
  return found == ids.end() ? std::nullopt : std::optional(found->second);
}

void check_range(std::int32_t id, const std::string& where) {
  if (id >= 0 && id < max_vocab_size) return;
  throw Error(fmt::format("{}: found id {}, expected one from 0 to {}", where, id, max_vocab_size - 1));
}

}  // namespace

Vocabulary::Vocabulary(const TokenizerData& data) {
  add_model_tokens(data);
  add_added_tokens(data);
}

void Vocabulary::add_model_tokens(const TokenizerData& data) {
  model_ids_.reserve(data.vocab.size());
  for (const auto& [text, id] : data.vocab) {
    const auto where = [&] { return fmt::format("{}: model.vocab: token {}", data.source, quote(text)); };
    if (id < 0 || id >= max_vocab_size) check_range(id, where());
    Token& token = place(id);
    if (token.exists) {
      throw Error(
          fmt::format("{}: found id {}, which {} has, expected an id for each", where(), id, quote(token.text)));
    }
    if (!model_ids_.emplace(text, id).second) throw Error(fmt::format("{}: found twice, expected once", where()));
    token = {text, from_byte_level(text).value_or(text), true, false};
  }
}

void Vocabulary::add_added_tokens(const TokenizerData& data) {
  const auto model_size = static_cast<std::int32_t>(model_ids_.size());
  std::int32_t next_id = model_size;
  for (std::size_t i = 0; i < data.added_tokens.size(); ++i) {
    const AddedToken& added = data.added_tokens[i];
    const std::string where = fmt::format("{}: added_tokens[{}], {}", data.source, i, quote(added.content));
    if (added.content.empty()) throw Error(fmt::format("{}: found an empty content, expected a text", where));
    check_range(added.id, where);
    const std::int32_t given = model_id_of(added.content).value_or(next_id);
    if (added.id != given) {
      throw Error(fmt::format("{}: found id {}, expected {}, which is what Hugging Face tokenizers makes of it", where,
                              added.id, given));
    }
    if (!added_ids_.emplace(added.content, given).second)
      throw Error(fmt::format("{}: found twice, expected once", where));
    next_id = std::max(next_id, given + 1);
    Token& token = place(given);
    if (token.exists && token.text != added.content) {
      throw Error(fmt::format("{}: found id {}, which {} has, expected another", where, given, quote(token.text)));
    }
    token = {added.content, from_byte_level(added.content).value_or(added.content), true, added.special};
  }
}

const Vocabulary::Token& Vocabulary::token(std::int32_t id) const {
  static const Token none;
  return id >= 0 && static_cast<std::size_t>(id) < tokens_.size() ? tokens_[static_cast<std::size_t>(id)] : none;
}

Vocabulary::Token& Vocabulary::place(std::int32_t id) {
  const auto index = static_cast<std::size_t>(id);
  if (index >= tokens_.size()) tokens_.resize(index + 1);
  return tokens_[index];
}

std::optional<std::int32_t> Vocabulary::id_of(std::string_view text) const {
  const auto added = find_id(added_ids_, text);
  return added ? added : find_id(model_ids_, text);
}

std::optional<std::int32_t> Vocabulary::model_id_of(std::string_view text) const {
  return find_id(model_ids_, text);
}

}  // namespace minimind
