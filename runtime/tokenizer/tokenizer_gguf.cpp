#include "runtime/tokenizer/tokenizer_gguf.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "runtime/text/utf8.h"
#include "runtime/tokenizer/tokenizer_gguf_keys.h"
#include "weights/io/error.h"
#include "weights/io/quote.h"

namespace minimind {
namespace {

using gguf_keys::TokenType;
using Texts = std::vector<std::string>;
using Integers = std::vector<std::int64_t>;

constexpr std::string_view way_out = "give the model's tokenizer.json with --tokenizer";
constexpr std::string_view damaged = "the file is damaged; copy or convert it again";

// As Vocabulary allows them.
constexpr std::size_t most_tokens = std::size_t{1} << 20;

std::string describe_value(const GgufValue* value) {
  if (!value) return "nothing";
  if (!value->is_array()) return fmt::format("a value of type {}", name_of(value->type));
  const std::size_t size = std::visit(
      [](const auto& data) -> std::size_t {
        if constexpr (requires { data.begin(); }) return data.size();
        return 0;
      },
      value->data);
  return fmt::format("an array of {} {}", size, name_of(value->type));
}

// The metadata of one file, read key by key. What is not as wanted throws Error with the file, the key, what was found
// and what was wanted.
class Fields {
 public:
  Fields(const GgufMetadata& metadata, const std::string& source) : metadata_(metadata), source_(source) {}

  [[noreturn]] void fail(std::string_view key, std::string_view found, std::string_view wanted,
                         std::string_view advice = damaged) const {
    throw Error(fmt::format("{}: {}: found {}, expected {}; {}", source_, key, found, wanted, advice));
  }

  const std::string* optional_text(std::string_view key) const {
    const GgufValue* const value = metadata_.find(key);
    if (!value) return nullptr;
    const auto* const text = std::get_if<std::string>(&value->data);
    if (!text || !is_utf8(*text)) fail(key, text ? "bytes that are not UTF-8" : describe_value(value), "a text");
    return text;
  }

  bool flag(std::string_view key, bool if_absent) const {
    const GgufValue* const value = metadata_.find(key);
    if (!value) return if_absent;
    const auto* const flag = std::get_if<bool>(&value->data);
    if (!flag) fail(key, describe_value(value), "true or false");
    return *flag;
  }

  const Texts& texts(std::string_view key) const {
    const GgufValue* const value = metadata_.find(key);
    const auto* const texts = value ? std::get_if<Texts>(&value->data) : nullptr;
    if (!texts) fail(key, describe_value(value), "an array of strings", value ? damaged : way_out);
    return *texts;
  }

  // An array of whole numbers of any type; empty when there is none. One that is too large for 64 bits with a sign is
  // -1, which no key allows.
  Integers integers(std::string_view key) const {
    const GgufValue* const value = metadata_.find(key);
    if (!value) return {};
    if (const auto* const numbers = std::get_if<Integers>(&value->data)) return *numbers;
    const auto* const numbers = std::get_if<std::vector<std::uint64_t>>(&value->data);
    if (!numbers) fail(key, describe_value(value), "an array of whole numbers");
    Integers result;
    result.reserve(numbers->size());
    for (const std::uint64_t number : *numbers) result.push_back(number > INT64_MAX ? -1 : std::int64_t(number));
    return result;
  }

  std::optional<std::uint64_t> optional_id(std::string_view key) const {
    const GgufValue* const value = metadata_.find(key);
    if (!value) return std::nullopt;
    if (const auto* const number = std::get_if<std::uint64_t>(&value->data)) return *number;
    const auto* const number = std::get_if<std::int64_t>(&value->data);
    if (!number || *number < 0) fail(key, number ? std::to_string(*number) : describe_value(value), "a token id");
    return static_cast<std::uint64_t>(*number);
  }

 private:
  const GgufMetadata& metadata_;
  const std::string& source_;
};

void require_known_kind(const Fields& fields) {
  const std::string* const model = fields.optional_text(gguf_keys::model);
  if (!model || *model == "none" || *model == "no_vocab") {
    fields.fail(gguf_keys::model, model ? quote(*model) : "nothing", "a tokenizer", way_out);
  }
  if (*model != gguf_keys::byte_level_bpe) {
    fields.fail(gguf_keys::model, quote(*model), "'gpt2', which is byte-level BPE: no other is supported", way_out);
  }
  const std::string* const pre = fields.optional_text(gguf_keys::pre);
  if (!pre || *pre != gguf_keys::gpt2_split) {
    fields.fail(gguf_keys::pre, pre ? quote(*pre) : "nothing",
                "'gpt-2', as MiniMind's tokenizers split texts: another split gives other ids", way_out);
  }
}

bool is_added(TokenType type) {
  return type == TokenType::control || type == TokenType::unknown || type == TokenType::user_defined;
}

std::vector<TokenType> read_types(const Fields& fields, std::size_t tokens) {
  const Integers numbers = fields.integers(gguf_keys::token_type);
  if (numbers.size() != tokens) {
    fields.fail(gguf_keys::token_type, fmt::format("{} types", numbers.size()),
                fmt::format("one for each of the {} tokens, which tells the special ones", tokens),
                numbers.empty() ? way_out : damaged);
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

void check_texts(const Fields& fields, const Texts& texts) {
  if (texts.empty() || texts.size() > most_tokens) {
    fields.fail(gguf_keys::tokens, fmt::format("{} tokens", texts.size()), fmt::format("1 to {}", most_tokens));
  }
  std::unordered_set<std::string_view> seen;
  seen.reserve(texts.size());
  for (std::size_t id = 0; id < texts.size(); ++id) {
    const auto key = [&] { return fmt::format("{}[{}]", gguf_keys::tokens, id); };
    if (!is_utf8(texts[id])) fields.fail(key(), "bytes that are not UTF-8", "a text");
    if (!seen.insert(texts[id]).second) {
      fields.fail(key(), fmt::format("{}, which an earlier token is", quote(texts[id])), "another text");
    }
  }
}

// Every token but the unused ones is one of the model's, as in MiniMind's own files, unless our writer says otherwise.
void read_tokens(const Fields& fields, const Texts& texts, const std::vector<TokenType>& types, TokenizerData& data) {
  std::vector<AddedToken*> added(texts.size(), nullptr);
  data.added_tokens.reserve(static_cast<std::size_t>(std::count_if(types.begin(), types.end(), is_added)));
  for (std::size_t id = 0; id < texts.size(); ++id) {
    if (!is_added(types[id])) continue;
    data.added_tokens.push_back(
        {.id = static_cast<std::int32_t>(id), .content = texts[id], .special = types[id] != TokenType::user_defined});
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

void read_merges(const Fields& fields, TokenizerData& data) {
  std::unordered_set<std::string_view> tokens;
  tokens.reserve(data.vocab.size());
  for (const auto& [text, id] : data.vocab) tokens.insert(text);
  const Texts& merges = fields.texts(gguf_keys::merges);
  data.merges.reserve(merges.size());
  for (const std::string& merge : merges) {
    const std::size_t space = std::min(merge.find(' '), merge.size());
    std::string left = merge.substr(0, space);
    std::string right = merge.substr(std::min(space + 1, merge.size()));
    if (!tokens.contains(left) || !tokens.contains(right) || !tokens.contains(left + right)) {
      fields.fail(fmt::format("{}[{}]", gguf_keys::merges, data.merges.size()), quote(merge),
                  "two tokens, \"a b\", that together are a token too");
    }
    data.merges.emplace_back(std::move(left), std::move(right));
  }
}

void read_named_tokens(const Fields& fields, const Texts& texts, const std::vector<TokenType>& types,
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

// What is put around a text. Ids of ours that are no tokens are found by Tokenizer.
void read_added_ids(const Fields& fields, const Texts& texts, TokenizerData& data) {
  for (const auto& added : gguf_keys::added_ids) {
    std::vector<std::int32_t>& ids = data.*added.ids;
    for (const std::int64_t id : fields.integers(added.ids_key)) {
      if (id < 0 || static_cast<std::size_t>(id) >= texts.size()) {
        fields.fail(added.ids_key, std::to_string(id), fmt::format("ids below {}", texts.size()));
      }
      ids.push_back(static_cast<std::int32_t>(id));
    }
    if (!fields.flag(added.key, false)) continue;
    const auto& name = data.*added.named;
    if (!name) fields.fail(added.key, "true", "false, for the file names no such token", way_out);
    const auto id = std::find(texts.begin(), texts.end(), *name) - texts.begin();
    ids = {static_cast<std::int32_t>(id)};
  }
}

}  // namespace

TokenizerData read_tokenizer_gguf(const GgufMetadata& metadata, const std::string& source) {
  const Fields fields(metadata, source);
  require_known_kind(fields);
  TokenizerData data;
  data.source = source;
  const Texts& texts = fields.texts(gguf_keys::tokens);
  check_texts(fields, texts);
  const std::vector<TokenType> types = read_types(fields, texts.size());
  read_tokens(fields, texts, types, data);
  read_merges(fields, data);
  read_named_tokens(fields, texts, types, data);
  read_added_ids(fields, texts, data);
  for (const auto& flag : gguf_keys::flags) data.*flag.value = fields.flag(flag.key, flag.usual);
  if (const std::string* const text = fields.optional_text(gguf_keys::unk_token)) data.unk_token = *text;
  if (const std::string* const text = fields.optional_text(gguf_keys::chat_template)) data.chat_template = *text;
  if (const std::string* const text = fields.optional_text(gguf_keys::tool_use_template))
    data.tool_use_template = *text;
  data.chat_template_source = source + ": " + std::string(gguf_keys::chat_template);
  return data;
}

}  // namespace minimind
