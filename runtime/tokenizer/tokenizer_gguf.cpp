#include "runtime/tokenizer/tokenizer_gguf.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "runtime/text/utf8.h"
#include "runtime/tokenizer/tokenizer.h"
#include "runtime/tokenizer/tokenizer_json_writer.h"
#include "runtime/tokenizer/vocabulary.h"
#include "weights/base/error.h"
#include "weights/base/text.h"

namespace minimind {
// The keys that the reader and the writer share.
namespace gguf_keys {
namespace {

constexpr std::string_view model = "tokenizer.ggml.model";
constexpr std::string_view pre = "tokenizer.ggml.pre";
constexpr std::string_view tokens = "tokenizer.ggml.tokens";
constexpr std::string_view token_type = "tokenizer.ggml.token_type";
constexpr std::string_view merges = "tokenizer.ggml.merges";
constexpr std::string_view eot_token_id = "tokenizer.ggml.eot_token_id";
constexpr std::string_view add_bos_token = "tokenizer.ggml.add_bos_token";
constexpr std::string_view add_eos_token = "tokenizer.ggml.add_eos_token";
constexpr std::string_view add_space_prefix = "tokenizer.ggml.add_space_prefix";
constexpr std::string_view chat_template = "tokenizer.chat_template";
constexpr std::string_view chat_templates = "tokenizer.chat_templates";  // the names of further templates
constexpr std::string_view tool_use_template = "tokenizer.chat_template.tool_use";

constexpr std::string_view byte_level_bpe = "gpt2";
constexpr std::string_view gpt2_split = "gpt-2";

// llama.cpp's token types.
enum class TokenType : std::int32_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5 };

struct NamedToken {
  std::string_view key;
  std::optional<std::string> TokenizerData::*text;
};
constexpr std::array named_tokens = {NamedToken{"tokenizer.ggml.bos_token_id", &TokenizerData::bos_token},
                                     NamedToken{"tokenizer.ggml.eos_token_id", &TokenizerData::eos_token},
                                     NamedToken{"tokenizer.ggml.unknown_token_id", &TokenizerData::config_unk_token},
                                     NamedToken{"tokenizer.ggml.padding_token_id", &TokenizerData::pad_token}};

struct Flag {
  std::string_view key;
  bool TokenizerData::*value;
  bool usual;
};
constexpr std::array flags = {Flag{"minimind.tokenizer.add_prefix_space", &TokenizerData::add_prefix_space, false},
                              Flag{"minimind.tokenizer.ignore_merges", &TokenizerData::ignore_merges, false},
                              Flag{"minimind.tokenizer.fuse_unk", &TokenizerData::fuse_unk, false},
                              Flag{"minimind.tokenizer.use_regex", &TokenizerData::use_regex, true}};

struct AddedTokenFlag {
  std::string_view key;
  bool AddedToken::*value;
};
constexpr std::array added_token_flags = {AddedTokenFlag{"minimind.tokenizer.lstrip", &AddedToken::lstrip},
                                          AddedTokenFlag{"minimind.tokenizer.rstrip", &AddedToken::rstrip},
                                          AddedTokenFlag{"minimind.tokenizer.single_word", &AddedToken::single_word},
                                          AddedTokenFlag{"minimind.tokenizer.normalized", &AddedToken::normalized}};

struct AddedIds {
  std::string_view key;  // llama.cpp's: adds the token that `named` refers to
  std::optional<std::string> TokenizerData::*named;
  std::string_view ids_key;  // our own: any other tokens
  std::vector<std::int32_t> TokenizerData::*ids;
};
constexpr std::array added_ids = {
    AddedIds{add_bos_token, &TokenizerData::bos_token, "minimind.tokenizer.before_text", &TokenizerData::before_text},
    AddedIds{add_eos_token, &TokenizerData::eos_token, "minimind.tokenizer.after_text", &TokenizerData::after_text}};

constexpr std::string_view unk_token = "minimind.tokenizer.unk_token";
constexpr std::string_view normal_form = "minimind.tokenizer.normal_form";
constexpr std::string_view appended = "minimind.tokenizer.appended";

}  // namespace
}  // namespace gguf_keys

namespace {

using gguf_keys::TokenType;
using Integers = std::vector<std::int64_t>;
using TextSet = std::unordered_set<std::string_view, TextHash>;

constexpr std::string_view way_out = "use the model's tokenizer.json";
constexpr std::string_view corrupt = "the file is corrupt; copy or convert it again";

std::string describe_value(const GgufValue* value) {
  if (!value) return "nothing";
  if (!value->is_array()) return fmt::format("a value of type {}", name_of(value->type));
  return fmt::format("an array of {} {}", value->size(), name_of(value->type));
}

// The keys of a tokenizer. Messages say what to do.
class TokenizerFields : public GgufFields {
 public:
  TokenizerFields(const GgufMetadata& metadata, const std::string& source) : GgufFields(metadata, source) {}

  using GgufFields::fail;
  [[noreturn]] void fail(std::string_view key, std::string_view found, std::string_view wanted,
                         std::string_view advice = corrupt) const {
    throw Error(message(key, found, wanted, advice), advice == way_out ? Setting::tokenizer : Setting::none);
  }

  std::optional<std::string> utf8_text(std::string_view key) const {
    auto value = text(key);
    if (value && !is_utf8(*value)) fail(key, "bytes that are not UTF-8", "a string");
    return value;
  }

  const GgufTexts& texts(std::string_view key) const {
    const auto* const texts = get<GgufTexts>(key, "an array of strings");
    if (!texts) fail(key, "nothing", "an array of strings", way_out);
    return *texts;
  }

  // Returns an array of integers of any type; empty if there is none.
  Integers integers(std::string_view key) const {
    const GgufValue* const value = find(key);
    if (value && !value->is_array()) fail(key, "an array of whole numbers");
    return whole_numbers(key, "an array of whole numbers");
  }

  std::optional<std::uint64_t> optional_id(std::string_view key) const {
    const GgufValue* const value = find(key);
    if (!value) return std::nullopt;
    if (value->is_array()) fail(key, "a token id");
    const std::int64_t id = whole_numbers(key, "a token id").front();
    if (id < 0) fail(key, shown(*value), "a token id");
    return static_cast<std::uint64_t>(id);
  }

 private:
  std::string message(std::string_view key, std::string_view wanted) const override {
    return message(key, describe_value(find(key)), wanted, corrupt);
  }
  std::string message(std::string_view key, std::string_view found, std::string_view wanted,
                      std::string_view advice) const {
    return fmt::format("{}: {}: found {}, expected {}; {}", source(), key, found, wanted, advice);
  }
};

void require_known_kind(const TokenizerFields& fields) {
  const auto model = fields.utf8_text(gguf_keys::model);
  if (!model || *model == "none" || *model == "no_vocab") {
    fields.fail(gguf_keys::model, model ? quote(*model) : "nothing", "a tokenizer", way_out);
  }
  if (*model != gguf_keys::byte_level_bpe) {
    fields.fail(gguf_keys::model, quote(*model), "'gpt2', which is byte-level BPE: no other is supported", way_out);
  }
  const auto pre = fields.utf8_text(gguf_keys::pre);
  if (!pre || *pre != gguf_keys::gpt2_split) {
    fields.fail(gguf_keys::pre, pre ? quote(*pre) : "nothing",
                "'gpt-2', as MiniMind's tokenizers split texts: another split gives other ids", way_out);
  }
}

bool is_added(TokenType type) {
  return type == TokenType::control || type == TokenType::unknown || type == TokenType::user_defined;
}

std::vector<TokenType> read_types(const TokenizerFields& fields, std::size_t tokens) {
  const Integers numbers = fields.integers(gguf_keys::token_type);
  if (numbers.size() != tokens) {
    fields.fail(gguf_keys::token_type, fmt::format("{} types", numbers.size()),
                fmt::format("one for each of the {} tokens, which marks the special tokens", tokens),
                numbers.empty() ? way_out : corrupt);
  }
  std::vector<TokenType> types;
  types.reserve(tokens);
  for (const std::int64_t number : numbers) {
    if (number < 1 || number > 5) {
      fields.fail(fmt::format("{}[{}]", gguf_keys::token_type, types.size()), std::to_string(number),
                  "1 (normal), 2 (unknown), 3 (control), 4 (user-defined) or 5 (unused)", way_out);
    }
    types.push_back(static_cast<TokenType>(number));
  }
  return types;
}

void check_texts(const TokenizerFields& fields, const GgufTexts& texts) {
  if (texts.size() == 0 || texts.size() > most_tokenizer_entries) {
    fields.fail(gguf_keys::tokens, fmt::format("{} tokens", texts.size()),
                fmt::format("1 to {}", most_tokenizer_entries));
  }
  TextSet seen(texts.size());
  for (std::size_t id = 0; id < texts.size(); ++id) {
    const auto key = [&] { return fmt::format("{}[{}]", gguf_keys::tokens, id); };
    if (!is_utf8(texts[id])) fields.fail(key(), "bytes that are not UTF-8", "a string");
    if (!seen.insert(texts[id]).second) {
      fields.fail(key(), fmt::format("{}, which an earlier token is", quote(texts[id])), "another string");
    }
  }
}

// Every token except unused ones belongs to the model, as in MiniMind's own files, unless our own keys state otherwise.
void read_tokens(const TokenizerFields& fields, const GgufTexts& texts, const std::vector<TokenType>& types,
                 TokenizerData& data) {
  std::vector<AddedToken*> added(texts.size(), nullptr);
  data.added_tokens.reserve(static_cast<std::size_t>(std::count_if(types.begin(), types.end(), is_added)));
  for (std::size_t id = 0; id < texts.size(); ++id) {
    if (!is_added(types[id])) continue;
    data.added_tokens.push_back({.id = static_cast<std::int32_t>(id),
                                 .content = std::string(texts[id]),
                                 .special = types[id] != TokenType::user_defined});
    added[id] = &data.added_tokens.back();
  }
  const auto for_each_added = [&](std::string_view key, auto&& action) {
    for (const std::int64_t id : fields.integers(key)) {
      const bool known = id >= 0 && static_cast<std::size_t>(id) < added.size() && added[static_cast<std::size_t>(id)];
      if (!known) fields.fail(key, std::to_string(id), "ids of tokens of type 2, 3 or 4");
      action(*added[static_cast<std::size_t>(id)]);
    }
  };
  for (const auto& flag : gguf_keys::added_token_flags) {
    for_each_added(flag.key, [&](AddedToken& token) { token.*flag.value = true; });
  }
  std::vector<bool> in_model(texts.size());
  for (std::size_t id = 0; id < texts.size(); ++id) in_model[id] = types[id] != TokenType::unused;
  for_each_added(gguf_keys::appended,
                 [&](const AddedToken& token) { in_model[static_cast<std::size_t>(token.id)] = false; });
  data.vocab.reserve(texts.size());
  for (std::size_t id = 0; id < texts.size(); ++id) {
    if (in_model[id]) data.vocab.emplace_back(texts[id], static_cast<std::int32_t>(id));
  }
}

void read_merges(const TokenizerFields& fields, TokenizerData& data) {
  TextSet tokens(data.vocab.size());
  for (const auto& [text, id] : data.vocab) tokens.insert(text);
  const GgufTexts& merges = fields.texts(gguf_keys::merges);
  if (merges.size() > most_tokenizer_entries) {
    fields.fail(gguf_keys::merges, fmt::format("{} merges", merges.size()),
                fmt::format("at most {}", most_tokenizer_entries));
  }
  data.merges.reserve(merges.size());
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const std::string_view merge = merges[i];
    const std::size_t space = std::min(merge.find(' '), merge.size());
    std::string left(merge.substr(0, space));
    std::string right(merge.substr(std::min(space + 1, merge.size())));
    if (!tokens.contains(left) || !tokens.contains(right) || !tokens.contains(left + right)) {
      fields.fail(fmt::format("{}[{}]", gguf_keys::merges, i), quote(merge),
                  "two tokens, \"a b\", that together are a token too");
    }
    data.merges.emplace_back(std::move(left), std::move(right));
  }
}

void read_named_tokens(const TokenizerFields& fields, const GgufTexts& texts, const std::vector<TokenType>& types,
                       TokenizerData& data) {
  for (const auto& named : gguf_keys::named_tokens) {
    const auto id = fields.optional_id(named.key);
    if (!id) continue;
    if (*id >= texts.size() || types[*id] == TokenType::unused) {
      fields.fail(named.key, std::to_string(*id),
                  *id < texts.size() ? "a token that is not unused" : fmt::format("an id below {}", texts.size()));
    }
    data.*named.text = texts[*id];
  }
}

// The ids around a text. Tokenizer reports ids of our own keys that are not tokens.
void read_added_ids(const TokenizerFields& fields, const GgufTexts& texts, TokenizerData& data) {
  for (const auto& added : gguf_keys::added_ids) {
    std::vector<std::int32_t>& ids = data.*added.ids;
    for (const std::int64_t id : fields.integers(added.ids_key)) {
      if (id < 0 || static_cast<std::size_t>(id) >= texts.size()) {
        fields.fail(added.ids_key, std::to_string(id), fmt::format("ids below {}", texts.size()));
      }
      ids.push_back(static_cast<std::int32_t>(id));
    }
    if (!fields.flag(added.key).value_or(false)) continue;
    const auto& name = data.*added.named;
    if (!name) fields.fail(added.key, "true", "false, because the file names no such token", way_out);
    std::size_t id = 0;
    while (id < texts.size() && texts[id] != *name) ++id;
    ids = {static_cast<std::int32_t>(id)};
  }
}

}  // namespace

TokenizerData read_tokenizer_gguf(const GgufMetadata& metadata, const std::string& source) {
  const TokenizerFields fields(metadata, source);
  require_known_kind(fields);
  TokenizerData data;
  data.source = source;
  const GgufTexts& texts = fields.texts(gguf_keys::tokens);
  check_texts(fields, texts);
  const std::vector<TokenType> types = read_types(fields, texts.size());
  read_tokens(fields, texts, types, data);
  read_merges(fields, data);
  read_named_tokens(fields, texts, types, data);
  read_added_ids(fields, texts, data);
  for (const auto& flag : gguf_keys::flags) data.*flag.value = fields.flag(flag.key).value_or(flag.usual);
  data.unk_token = fields.utf8_text(gguf_keys::unk_token);
  const auto form = fields.utf8_text(gguf_keys::normal_form);
  if (form && !(data.normal_form = normal_form_of(*form)))
    fields.fail(gguf_keys::normal_form, quote(*form), "NFC, NFD, NFKC or NFKD");
  data.chat_template = fields.utf8_text(gguf_keys::chat_template);
  data.tool_use_template = fields.utf8_text(gguf_keys::tool_use_template);
  data.chat_template_source = source + ": " + std::string(gguf_keys::chat_template);
  return data;
}

namespace {

using Ids = std::vector<std::int32_t>;

// "[PAD7]", or a longer string if a token has that name: llama.cpp aborts if two tokens are equal.
std::string unused_text(std::size_t id, const Tokenizer& tokenizer) {
  std::string text = fmt::format("[PAD{}]", id);
  while (tokenizer.id_of(text)) text += '_';
  return text;
}

// Added tokens are written plain, because llama.cpp searches for them in the text and prints them unchanged. The others
// are in the byte-level spelling.
void set_tokens(GgufMetadata& metadata, const TokenizerData& data, const Tokenizer& tokenizer, std::size_t vocab_size) {
  std::vector<std::string> texts;
  texts.reserve(vocab_size);
  Ids types(vocab_size, static_cast<std::int32_t>(TokenType::normal));
  for (std::size_t id = 0; id < vocab_size; ++id) {
    texts.push_back(tokenizer.token_text(static_cast<std::int32_t>(id)));
    if (!texts.back().empty()) continue;
    texts.back() = unused_text(id, tokenizer);
    types[id] = static_cast<std::int32_t>(TokenType::unused);
  }
  for (const AddedToken& token : data.added_tokens) {
    types[static_cast<std::size_t>(token.id)] =
        static_cast<std::int32_t>(token.special ? TokenType::control : TokenType::user_defined);
  }
  metadata.set_strings(std::string(gguf_keys::tokens), texts);
  metadata.set_i32s(std::string(gguf_keys::token_type), types);
}

std::string merge_text(const TokenizerData& data, std::size_t rank) {
  const auto& [left, right] = data.merges[rank];
  for (const std::string* const part : {&left, &right}) {
    if (!part->empty() && part->find(' ') == std::string::npos) continue;
    throw Error(
        fmt::format("{}: model.merges[{}]: found {}, expected a token without spaces, as a GGUF spells a merge "
                    "\"a b\"",
                    data.source, rank, quote(*part)));
  }
  return left + ' ' + right;
}

// Of two merges of one pair, the later applies in Hugging Face, the earlier in llama.cpp: only the later is written.
void set_merges(GgufMetadata& metadata, const TokenizerData& data) {
  std::vector<std::string> merges;
  merges.reserve(data.merges.size());
  std::set<std::string> later;
  for (std::size_t rank = data.merges.size(); rank-- > 0;) {
    std::string text = merge_text(data, rank);
    if (later.insert(text).second) merges.push_back(std::move(text));
  }
  std::reverse(merges.begin(), merges.end());
  metadata.set_strings(std::string(gguf_keys::merges), merges);
}

void set_ids_if_any(GgufMetadata& metadata, std::string_view key, const std::set<std::int32_t>& ids) {
  if (!ids.empty()) metadata.set_i32s(std::string(key), Ids(ids.begin(), ids.end()));
}

void set_own_keys(GgufMetadata& metadata, const TokenizerData& data) {
  for (const auto& flag : gguf_keys::flags) {
    if (data.*flag.value != flag.usual) metadata.set_bool(std::string(flag.key), data.*flag.value);
  }
  if (data.unk_token) metadata.set_string(std::string(gguf_keys::unk_token), *data.unk_token);
  if (data.normal_form)
    metadata.set_string(std::string(gguf_keys::normal_form), std::string(name_of(*data.normal_form)));
  for (const auto& flag : gguf_keys::added_token_flags) {
    std::set<std::int32_t> ids;
    for (const AddedToken& token : data.added_tokens) {
      if (token.*flag.value) ids.insert(token.id);
    }
    set_ids_if_any(metadata, flag.key, ids);
  }
  std::set<std::int32_t> appended;
  for (const AddedToken& token : data.added_tokens) appended.insert(token.id);
  for (const auto& [text, id] : data.vocab) appended.erase(id);
  set_ids_if_any(metadata, gguf_keys::appended, appended);
}

// If the tokenizer's files name no end or start token, llama.cpp takes another one.
std::vector<Fact> unnamed_tokens(const TokenizerData& data, const Tokenizer& tokenizer, std::size_t vocab_size) {
  constexpr std::size_t taken = 11;
  std::vector<Fact> facts;
  if (vocab_size <= taken) return facts;
  const std::string text = quote(tokenizer.token_text(std::int32_t{taken}));
  if (!data.eos_token) facts.push_back(Fact("without an eos_token, llama.cpp ends texts at token {}, {}", taken, text));
  if (!data.bos_token) facts.push_back(Fact("without a bos_token, llama.cpp uses token {}, {}", taken, text));
  return facts;
}

}  // namespace

std::vector<Fact> set_tokenizer(GgufMetadata& metadata, const TokenizerData& data, std::size_t vocab_size) {
  const Tokenizer tokenizer(data);  // checks the data
  if (tokenizer.vocab_size() > vocab_size) {
    throw Error(
        fmt::format("{}: has ids up to {}, and the model's embedding has {} rows; give the tokenizer that the "
                    "model was trained with",
                    data.source, tokenizer.vocab_size() - 1, vocab_size));
  }
  metadata.set_string(std::string(gguf_keys::model), std::string(gguf_keys::byte_level_bpe));
  metadata.set_string(std::string(gguf_keys::pre), std::string(gguf_keys::gpt2_split));
  set_tokens(metadata, data, tokenizer, vocab_size);
  set_merges(metadata, data);
  for (const auto& named : gguf_keys::named_tokens) {
    const auto& text = data.*named.text;
    const auto id = text ? tokenizer.id_of(*text) : std::nullopt;
    if (id) metadata.set_u32(std::string(named.key), static_cast<std::uint32_t>(*id));
  }
  // Otherwise llama.cpp picks any token with the name of an end of a turn, and not always the same token.
  if (const auto id = tokenizer.eos_id()) {
    metadata.set_u32(std::string(gguf_keys::eot_token_id), static_cast<std::uint32_t>(*id));
  }
  for (const auto& added : gguf_keys::added_ids) {
    const Ids& ids = data.*added.ids;
    const bool is_named = is_just(data, ids, data.*added.named);
    metadata.set_bool(std::string(added.key), is_named);
    if (!ids.empty() && !is_named) metadata.set_i32s(std::string(added.ids_key), ids);
  }
  metadata.set_bool(std::string(gguf_keys::add_space_prefix), data.add_prefix_space);
  if (data.chat_template) metadata.set_string(std::string(gguf_keys::chat_template), *data.chat_template);
  if (data.tool_use_template) {
    metadata.set_string(std::string(gguf_keys::tool_use_template), *data.tool_use_template);
    metadata.set_strings(std::string(gguf_keys::chat_templates), {"tool_use"});
  }
  set_own_keys(metadata, data);
  return unnamed_tokens(data, tokenizer, vocab_size);
}

}  // namespace minimind
