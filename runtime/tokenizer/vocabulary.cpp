#include "runtime/tokenizer/vocabulary.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>

#include "runtime/text/utf8.h"
#include "weights/base/error.h"
#include "weights/base/text.h"

namespace minimind {
namespace {

constexpr char32_t alphabet_end = 0x144;  // the largest code point of the alphabet plus 1

constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
}

constexpr struct Alphabet {
  std::array<char16_t, 256> code_point_of;
  std::array<std::int16_t, alphabet_end> byte_of;  // -1 for a code point outside the alphabet

  constexpr Alphabet() {
    byte_of.fill(-1);
    char16_t next = 0x100;
    for (std::int16_t byte = 0; byte < 256; ++byte) {
      code_point_of[byte] = stands_for_itself(byte) ? static_cast<char16_t>(byte) : next++;
      byte_of[code_point_of[byte]] = byte;
    }
  }
} alphabet;

// Far above any vocabulary in use (262,144 in Gemma 3), far below an allocation that a hostile file could abuse.
constexpr std::int32_t max_vocab_size = 1 << 20;
constexpr std::int32_t no_id = -1;

void check_range(std::int32_t id, const std::string& where) {
  if (id >= 0 && id < max_vocab_size) return;
  throw Error(fmt::format("{}: found id {}, expected one from 0 to {}", where, id, max_vocab_size - 1));
}

}  // namespace

// A polynomial modulo the prime 2^61 - 1, of other coefficients for each text: a 1 and 7 of its bytes each.
std::size_t TextHash::operator()(std::string_view text) const {
  constexpr std::uint64_t prime = (std::uint64_t{1} << 61) - 1;
  static const std::uint64_t argument = [] {
    const auto time = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    return (time * 0x9E3779B97F4A7C15 ^ reinterpret_cast<std::uintptr_t>(&time)) % prime;
  }();
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < text.size(); i += 7) {
    std::uint64_t coefficient = 1;
    for (const char byte : text.substr(i, 7)) coefficient = coefficient << 8 | static_cast<unsigned char>(byte);
    const auto product = static_cast<unsigned __int128>(hash + coefficient) * argument;
    hash = (static_cast<std::uint64_t>(product & prime) + static_cast<std::uint64_t>(product >> 61)) % prime;
  }
  return static_cast<std::size_t>(hash);
}

std::string to_byte_level(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    append_utf8(text, alphabet.code_point_of[static_cast<unsigned char>(byte)]);
  }
  return text;
}

std::optional<std::string> from_byte_level(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    const Utf8Char next = first_utf8(text);
    if (next.code_point >= alphabet_end || alphabet.byte_of[next.code_point] < 0) return std::nullopt;
    bytes += static_cast<char>(alphabet.byte_of[next.code_point]);
    text.remove_prefix(next.size);
  }
  return bytes;
}

Vocabulary::Vocabulary(const TokenizerData& data)
    : slots_(std::bit_ceil(2 * (data.vocab.size() + data.added_tokens.size()) + 1), no_id) {
  tokens_.reserve(data.vocab.size() + data.added_tokens.size());
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
    std::int32_t& slot = slots_[slot_of(text)];
    if (slot != no_id) throw Error(fmt::format("{}: is repeated, expected once", where()));
    slot = id;
    token = {.text = text, .bytes = from_byte_level(text).value_or(text), .exists = true, .of_model = true};
  }
}

void Vocabulary::add_added_tokens(const TokenizerData& data) {
  auto next_id = static_cast<std::int32_t>(data.vocab.size());
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
    std::int32_t& slot = slots_[slot_of(added.content)];
    if (token.added || (slot != no_id && !token.of_model))
      throw Error(fmt::format("{}: is repeated, expected once", where));
    slot = given;
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

std::size_t Vocabulary::slot_of(std::string_view text) const {
  std::size_t slot = TextHash()(text) & (slots_.size() - 1);
  while (slots_[slot] != no_id && tokens_[static_cast<std::size_t>(slots_[slot])].text != text)
    slot = (slot + 1) & (slots_.size() - 1);
  return slot;
}

std::optional<std::int32_t> Vocabulary::id_of(std::string_view text) const {
  const std::int32_t id = slots_[slot_of(text)];
  return id == no_id ? std::nullopt : std::optional(id);
}

std::optional<std::int32_t> Vocabulary::model_id_of(std::string_view text) const {
  const auto id = id_of(text);
  return id && token(*id).of_model ? id : std::nullopt;
}

}  // namespace minimind
