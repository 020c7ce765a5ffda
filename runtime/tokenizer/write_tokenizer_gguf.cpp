#include "runtime/tokenizer/write_tokenizer_gguf.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "runtime/tokenizer/llama_cpp_differences.h"
#include "runtime/tokenizer/tokenizer.h"
#include "runtime/tokenizer/tokenizer_gguf_keys.h"
#include "weights/io/error.h"
#include "weights/io/quote.h"

namespace minimind {
namespace {

using gguf_keys::TokenType;
using Ids = std::vector<std::int32_t>;

// "[PAD7]", or a longer text where a token is called that: llama.cpp stops the program when two have one text.
std::string unused_text(std::size_t id, const Tokenizer& tokenizer) {
  std::string text = fmt::format("[PAD{}]", id);
  while (tokenizer.id_of(text)) text += '_';
  return text;
}

// Added tokens are written plain, as llama.cpp looks for them in the text and prints them as they stand; the others are
// in the byte-level spelling.
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
  metadata.set_strings(std::string(gguf_keys::tokens), std::move(texts));
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

// Of two merges of one pair the later counts in Hugging Face, the earlier in llama.cpp: only the later is written.
void set_merges(GgufMetadata& metadata, const TokenizerData& data) {
  std::vector<std::string> merges;
  merges.reserve(data.merges.size());
  std::unordered_set<std::string> later;
  later.reserve(data.merges.size());
  for (std::size_t rank = data.merges.size(); rank-- > 0;) {
    std::string text = merge_text(data, rank);
    if (later.insert(text).second) merges.push_back(std::move(text));
  }
  std::reverse(merges.begin(), merges.end());
  metadata.set_strings(std::string(gguf_keys::merges), std::move(merges));
}

void set_ids_if_any(GgufMetadata& metadata, std::string_view key, const std::set<std::int32_t>& ids) {
  if (!ids.empty()) metadata.set_i32s(std::string(key), Ids(ids.begin(), ids.end()));
}

void set_own_keys(GgufMetadata& metadata, const TokenizerData& data) {
  for (const auto& flag : gguf_keys::flags) {
    if (data.*flag.value != flag.usual) metadata.set_bool(std::string(flag.key), data.*flag.value);
  }
  if (data.unk_token) metadata.set_string(std::string(gguf_keys::unk_token), *data.unk_token);
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

}  // namespace

std::vector<std::string> set_tokenizer(GgufMetadata& metadata, const TokenizerData& data, std::size_t vocab_size) {
  const Tokenizer tokenizer(data);  // which checks the data
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
  // Else llama.cpp picks any token that is called like an end of a turn, and not always the same.
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
  return llama_cpp_differences(data, tokenizer, vocab_size);
}

}  // namespace minimind
