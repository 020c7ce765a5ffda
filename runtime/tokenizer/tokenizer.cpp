#include "runtime/tokenizer/tokenizer.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <functional>

#include "runtime/text/utf8.h"
#include "weights/base/cancel.h"
#include "weights/base/error.h"
#include "weights/base/text.h"

namespace minimind {
namespace {

using ByteIds = std::array<std::optional<std::int32_t>, 256>;

ByteIds find_byte_ids(const Vocabulary& vocabulary) {
  ByteIds ids;
  for (std::size_t byte = 0; byte < ids.size(); ++byte) {
    const char bytes[] = {static_cast<char>(byte)};
    ids[byte] = vocabulary.model_id_of(to_byte_level({bytes, 1}));
  }
  return ids;
}

// Hugging Face looks up unk_token on first use, which never happens if every byte has a token.
std::optional<std::int32_t> find_unk_id(const TokenizerData& data, const Vocabulary& vocabulary, const ByteIds& bytes) {
  if (!data.unk_token) return std::nullopt;
  const auto id = vocabulary.model_id_of(*data.unk_token);
  const bool needed = std::find(bytes.begin(), bytes.end(), std::nullopt) != bytes.end();
  if (!id && needed) {
    throw Error(fmt::format("{}: model.unk_token: found {}, expected a token of model.vocab", data.source,
                            quote(*data.unk_token)));
  }
  return id;
}

std::optional<std::int32_t> find_named_id(const TokenizerData& data, const Vocabulary& vocabulary, const char* field,
                                          const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  const auto id = vocabulary.id_of(*text);
  if (!id) {
    throw Error(
        fmt::format("{}: has no token {}, which the tokenizer_config.json next to it names as {}, expected a token",
                    data.source, quote(*text), field));
  }
  return id;
}

const std::vector<std::int32_t>& require_tokens(const TokenizerData& data, const Vocabulary& vocabulary,
                                                const std::vector<std::int32_t>& ids) {
  if (ids.size() > most_ids_around) {
    throw Error(fmt::format("{}: its post-processor adds {} ids to texts, expected at most {}", data.source, ids.size(),
                            most_ids_around));
  }
  for (const std::int32_t id : ids) {
    if (vocabulary.has(id)) continue;
    throw Error(fmt::format("{}: its post-processor adds id {} to texts, expected ids of its tokens; save it again",
                            data.source, id));
  }
  return ids;
}

std::vector<BpeMerge> find_merges(const TokenizerData& data, const Vocabulary& vocabulary) {
  std::vector<BpeMerge> merges;
  merges.reserve(data.merges.size());
  for (const auto& [left, right] : data.merges) {
    const auto id_of = [&](const std::string& text) {
      if (const auto id = vocabulary.model_id_of(text)) return *id;
      throw Error(fmt::format("{}: model.merges[{}]: found {}, expected a token of model.vocab", data.source,
                              merges.size(), quote(text)));
    };
    merges.push_back({id_of(left), id_of(right), id_of(left + right)});
  }
  return merges;
}

}  // namespace

Tokenizer::Tokenizer(const TokenizerData& data)
    : source_(data.source),
      vocabulary_(data),
      byte_ids_(find_byte_ids(vocabulary_)),
      unk_id_(find_unk_id(data, vocabulary_, byte_ids_)),
      literal_(data.added_tokens, false),
      normalized_(data.added_tokens, true),
      bpe_(find_merges(data, vocabulary_), vocabulary_.size()),
      normal_form_(data.normal_form),
      fuse_unk_(data.fuse_unk),
      ignore_merges_(data.ignore_merges),
      add_prefix_space_(data.add_prefix_space),
      use_regex_(data.use_regex),
      truncates_(data.truncates),
      before_text_(require_tokens(data, vocabulary_, data.before_text)),
      after_text_(require_tokens(data, vocabulary_, data.after_text)),
      bos_id_(find_named_id(data, vocabulary_, "bos_token", data.bos_token)),
      eos_id_(find_named_id(data, vocabulary_, "eos_token", data.eos_token)),
      pad_id_(find_named_id(data, vocabulary_, "pad_token", data.pad_token)),
      chat_template_(data.chat_template) {}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, const TextMarks& marks) const {
  if (!is_utf8(text)) {
    const std::string whole = to_utf8_lossy(text);
    TextMarks all;
    if (!marks.empty()) all.add(0, whole.size());
    return encode(whole, all);
  }
  const Words words = marks.empty() ? Words::unmarked : Words::marked;
  std::vector<std::int32_t> ids;
  const auto add = [&](const TextPiece& part) {
    check_cancelled();
    part.id ? ids.push_back(*part.id) : encode_text(part.text, words, ids);
  };
  literal_.split(text, marks, 0, [&](const TextPiece& piece) {
    if (piece.id) return add(piece);
    const auto begin = static_cast<std::size_t>(piece.text.data() - text.data());
    if (!normal_form_) return normalized_.split(piece.text, marks, begin, add);
    const auto [normal, its_marks] = normalized_parts(piece.text, marks, begin, *normal_form_);
    normalized_.split(normal, its_marks, 0, add);
  });
  return ids;
}

std::vector<std::int32_t> Tokenizer::encode_with_special(std::string_view text, const TextMarks& marks) const {
  std::vector<std::int32_t> ids = encode(text, marks);
  ids.insert(ids.begin(), before_text_.begin(), before_text_.end());
  ids.insert(ids.end(), after_text_.begin(), after_text_.end());
  return ids;
}

std::vector<std::int32_t> Tokenizer::encode_prompt(std::string_view text) const {
  if (!bos_id_ || text.starts_with(token_text(*bos_id_))) return encode_with_special(text);
  return encode_with_special(token_text(*bos_id_) + std::string(text));
}

// Words repeat: the ids of a repeated word are copied from its earlier position in `ids`. Words with one slot replace
// each other, so that a text with words chosen for that is not slower than one without repeated words.
void Tokenizer::encode_text(std::string_view text, Words words, std::vector<std::int32_t>& ids) const {
  struct Word {
    std::string_view text;
    std::size_t begin;
    std::size_t size;
  };
  std::string prefixed;
  if (add_prefix_space_ && text[0] != ' ') {
    prefixed = " ";
    prefixed += text;
    text = prefixed;
  }
  std::vector<Word> known(std::bit_ceil(std::min<std::size_t>(text.size(), 1 << 16)));
  while (!text.empty()) {
    check_cancelled();
    const std::string_view word = text.substr(0, use_regex_ ? gpt2_word_size(text) : text.size());
    text.remove_prefix(word.size());
    Word& same = known[std::hash<std::string_view>()(word) % known.size()];
    if (same.text == word) {
      for (std::size_t i = 0; i < same.size; ++i) ids.push_back(ids[same.begin + i]);
      continue;
    }
    const std::size_t begin = ids.size();
    encode_word(word, words, ids);
    same = {word, begin, ids.size() - begin};
  }
}

void Tokenizer::encode_word(std::string_view word, Words words, std::vector<std::int32_t>& ids) const {
  const auto is_refused = [&](std::int32_t id) { return words == Words::marked && is_added(id); };
  if (ignore_merges_) {
    if (const auto id = vocabulary_.model_id_of(to_byte_level(word)); id && !is_refused(*id)) {
      ids.push_back(*id);
      return;
    }
  }
  std::vector<std::int32_t> symbols = symbols_of(word);
  bpe_.merge(symbols);
  if (std::any_of(symbols.begin(), symbols.end(), is_refused)) symbols = symbols_of(word);
  ids.insert(ids.end(), symbols.begin(), symbols.end());
}

std::vector<std::int32_t> Tokenizer::symbols_of(std::string_view word) const {
  std::vector<std::int32_t> symbols;
  symbols.reserve(word.size());
  bool after_unknown = false;
  for (const char byte : word) {
    const auto& id = byte_ids_[static_cast<unsigned char>(byte)];
    if (id) {
      symbols.push_back(*id);
    } else if (unk_id_ && !(fuse_unk_ && after_unknown)) {
      symbols.push_back(*unk_id_);
    }
    after_unknown = !id;
  }
  return symbols;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool skip_special) const {
  std::string bytes;
  for (const std::int32_t id : ids) {
    if (!(skip_special && is_special(id))) bytes += token_bytes(id);
  }
  return to_utf8_lossy(bytes);
}

}  // namespace minimind
