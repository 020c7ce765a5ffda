#include "runtime/tokenizer/vocabulary.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "runtime/text/utf8.h"
#include "weights/base/error.h"
#include "weights/base/text.h"

namespace minimind {
namespace {

constexpr char32_t alphabet_end = 0x144;  // the largest code point of the alphabet plus 1

bool stands_for_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
}

struct Alphabet {
  std::array<char32_t, 256> code_point_of;
  std::array<int, alphabet_end> byte_of;  // -1 for a code point outside the alphabet

  Alphabet() {
    byte_of.fill(-1);
    char32_t next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      code_point_of[byte] = stands_for_itself(byte) ? byte : next++;
      byte_of[code_point_of[byte]] = static_cast<int>(byte);
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet instance;
  return instance;
}

}  // namespace

std::string to_byte_level(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    append_utf8(text, alphabet().code_point_of[static_cast<unsigned char>(byte)]);
  }
  return text;
}

std::optional<std::string> from_byte_level(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    const Utf8Char next = first_utf8(text);
    if (next.code_point >= alphabet_end || alphabet().byte_of[next.code_point] < 0) return std::nullopt;
    bytes += static_cast<char>(alphabet().byte_of[next.code_point]);
    text.remove_prefix(next.size);
  }
  return bytes;
}

namespace {

// Far above any vocabulary in use (262,144 in Gemma 3), far below an allocation that a hostile file could abuse.
constexpr std::int32_t max_vocab_size = 1 << 20;

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
  for (const auto& entry : data.vocab) {
    const std::string& text = entry.first;
    const std::int32_t id = entry.second;
    const auto where = [&] { return fmt::format("{}: model.vocab: token {}", data.source, quote(text)); };
    if (id < 0 || id >= max_vocab_size) check_range(id, where());
    Token& token = place(id);
    if (token.exists) {
      throw Error(fmt::format("{}: found id {}, which {} has, expected a unique id", where(), id, quote(token.text)));
    }
    if (!ids_.emplace(text, id).second) throw Error(fmt::format("{}: is repeated, expected once", where()));
    token = {.text = text, .bytes = from_byte_level(text).value_or(text), .exists = true, .of_model = true};
  }
}

void Vocabulary::add_added_tokens(const TokenizerData& data) {
  auto next_id = static_cast<std::int32_t>(ids_.size());
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < data.added_tokens.size(); ++i) {
    const AddedToken& added = data.added_tokens[i];
    const std::string where = fmt::format("{}: added_tokens[{}], {}", data.source, i, quote(added.content));
    bytes += added.content.size();
    if (bytes > most_added_bytes) {
      throw Error(fmt::format("{}: the added tokens have over {} bytes, expected fewer", where, most_added_bytes));
    }
    if (added.content.empty()) throw Error(fmt::format("{}: found an empty content, expected a string", where));
    check_range(added.id, where);
    const std::int32_t given = model_id_of(added.content).value_or(next_id);
    if (added.id != given) {
      throw Error(fmt::format("{}: found id {}, expected {}, which is what Hugging Face tokenizers makes of it", where,
                              added.id, given));
    }
    next_id = std::max(next_id, given + 1);
    Token& token = place(given);
    if (token.exists && token.text != added.content) {
      throw Error(fmt::format("{}: found id {}, which {} has, expected a unique id", where, given, quote(token.text)));
    }
    if (token.added || !(token.of_model || ids_.emplace(added.content, given).second))
      throw Error(fmt::format("{}: is repeated, expected once", where));
    token = {.text = added.content,
             .bytes = from_byte_level(added.content).value_or(added.content),
             .exists = true,
             .of_model = token.of_model,
             .special = added.special,
             .added = true};
  }
}

const Vocabulary::Token& Vocabulary::token(std::int32_t id) const {
  static const Token no_token;
  return id >= 0 && static_cast<std::size_t>(id) < tokens_.size() ? tokens_[static_cast<std::size_t>(id)] : no_token;
}

Vocabulary::Token& Vocabulary::place(std::int32_t id) {
  const auto index = static_cast<std::size_t>(id);
  if (index >= tokens_.size()) tokens_.resize(index + 1);
  return tokens_[index];
}

std::optional<std::int32_t> Vocabulary::id_of(std::string_view text) const {
  const auto found = ids_.find(text);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::int32_t> Vocabulary::model_id_of(std::string_view text) const {
  const auto id = id_of(text);
  return id && token(*id).of_model ? id : std::nullopt;
}

}  // namespace minimind
