#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "runtime/tokenizer/added_tokens.h"
#include "runtime/tokenizer/tokenizer_data.h"

// The keys that both directions of tokenizer_gguf.h share.

namespace minimind::gguf_keys {

inline constexpr std::string_view model = "tokenizer.ggml.model";
inline constexpr std::string_view pre = "tokenizer.ggml.pre";
inline constexpr std::string_view tokens = "tokenizer.ggml.tokens";
inline constexpr std::string_view token_type = "tokenizer.ggml.token_type";
inline constexpr std::string_view merges = "tokenizer.ggml.merges";
inline constexpr std::string_view eot_token_id = "tokenizer.ggml.eot_token_id";
inline constexpr std::string_view add_bos_token = "tokenizer.ggml.add_bos_token";
inline constexpr std::string_view add_eos_token = "tokenizer.ggml.add_eos_token";
inline constexpr std::string_view add_space_prefix = "tokenizer.ggml.add_space_prefix";
inline constexpr std::string_view chat_template = "tokenizer.chat_template";
inline constexpr std::string_view chat_templates = "tokenizer.chat_templates";  // the names of those that follow
inline constexpr std::string_view tool_use_template = "tokenizer.chat_template.tool_use";

inline constexpr std::string_view byte_level_bpe = "gpt2";
inline constexpr std::string_view gpt2_split = "gpt-2";

// Of llama.cpp's token types.
enum class TokenType : std::int32_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5 };

struct NamedToken {
  std::string_view key;
  std::optional<std::string> TokenizerData::*text;
};
inline constexpr std::array named_tokens = {
    NamedToken{"tokenizer.ggml.bos_token_id", &TokenizerData::bos_token},
    NamedToken{"tokenizer.ggml.eos_token_id", &TokenizerData::eos_token},
    NamedToken{"tokenizer.ggml.unknown_token_id", &TokenizerData::config_unk_token},
    NamedToken{"tokenizer.ggml.padding_token_id", &TokenizerData::pad_token}};

struct Flag {
  std::string_view key;
  bool TokenizerData::*value;
  bool usual;
};
inline constexpr std::array flags = {
    Flag{"minimind.tokenizer.add_prefix_space", &TokenizerData::add_prefix_space, false},
    Flag{"minimind.tokenizer.ignore_merges", &TokenizerData::ignore_merges, false},
    Flag{"minimind.tokenizer.fuse_unk", &TokenizerData::fuse_unk, false},
    Flag{"minimind.tokenizer.use_regex", &TokenizerData::use_regex, true}};

struct AddedTokenFlag {
  std::string_view key;
  bool AddedToken::*value;
};
inline constexpr std::array added_token_flags = {
    AddedTokenFlag{"minimind.tokenizer.lstrip", &AddedToken::lstrip},
    AddedTokenFlag{"minimind.tokenizer.rstrip", &AddedToken::rstrip},
    AddedTokenFlag{"minimind.tokenizer.single_word", &AddedToken::single_word},
    AddedTokenFlag{"minimind.tokenizer.normalized", &AddedToken::normalized}};

struct AddedIds {
  std::string_view key;  // of llama.cpp: adds the token that `named` says
  std::optional<std::string> TokenizerData::*named;
  std::string_view ids_key;  // ours: any others
  std::vector<std::int32_t> TokenizerData::*ids;
};
inline constexpr std::array added_ids = {
    AddedIds{add_bos_token, &TokenizerData::bos_token, "minimind.tokenizer.before_text", &TokenizerData::before_text},
    AddedIds{add_eos_token, &TokenizerData::eos_token, "minimind.tokenizer.after_text", &TokenizerData::after_text}};

inline constexpr std::string_view unk_token = "minimind.tokenizer.unk_token";
inline constexpr std::string_view appended = "minimind.tokenizer.appended";

}  // namespace minimind::gguf_keys
