#include "runtime/tokenizer/llama_cpp_differences.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <string_view>

#include "runtime/tokenizer/tokenizer_json_writer.h"
#include "runtime/tokenizer/vocabulary.h"
#include "weights/base/quote.h"

namespace minimind {
namespace {

// Strings that llama.cpp treats as control tokens regardless of their type, sorted: its lists of end-of-turn,
// end-of-text and fill-in-the-middle tokens.
constexpr std::array control_texts = std::to_array<std::string_view>({
    "<EOT>",
    "<MID>",
    "<PAD>",
    "<PRE>",
    "<REPO>",
    "<SUF>",
    "<end_of_turn>",
    "<end_of_utterance>",
    "<eos>",
    "<fim-middle>",
    "<fim-pad>",
    "<fim-prefix>",
    "<fim-repo>",
    "<fim-suffix>",
    "<fim_middle>",
    "<fim_pad>",
    "<fim_prefix>",
    "<fim_suffix>",
    "<reponame>",
    "<turn|>",
    "<|call|>",
    "<|calls|>",
    "<|code_middle|>",
    "<|code_prefix|>",
    "<|code_suffix|>",
    "<|end_of_text|>",
    "<|endoftext|>",
    "<|end|>",
    "<|eom_id|>",
    "<|eot_id|>",
    "<|file_sep|>",
    "<|fim_middle|>",
    "<|fim_pad|>",
    "<|fim_prefix|>",
    "<|fim_repo|>",
    "<|fim_suffix|>",
    "<|flush|>",
    "<|im_end|>",
    "<|middle|>",
    "<|prefix|>",
    "<|repo_name|>",
    "<|return|>",
    "<|suffix|>",
    "<|tool_response>",
    "<｜end▁of▁sentence｜>",
    "<｜fim▁begin｜>",
    "<｜fim▁end｜>",
    "<｜fim▁hole｜>",
    "[EOS]",
    "[EOT]",
    "[PAD]",
    "[e~[",
    "_<EOT>",
    "▁<MID>",
    "▁<PRE>",
    "▁<SUF>",
    "</s>",
});

// Strings that llama.cpp never treats as control tokens.
constexpr std::array plain_texts =
    std::to_array<std::string_view>({"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"});

template <typename List>
bool is_in(const List& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

// "'a', 'b', 'c' and 2 more"
Fact listed(const std::vector<std::string>& texts) {
  constexpr std::size_t shown = 3;
  std::string list;
  for (std::size_t i = 0; i < std::min(texts.size(), shown); ++i) {
    list += (i > 0 ? ", " : "") + quote(texts[i]);
  }
  return texts.size() > shown ? Fact("{} and {} more", list, texts.size() - shown) : Fact("{}", list);
}

template <typename Condition>
std::vector<std::string> added_tokens_where(const TokenizerData& data, Condition condition) {
  std::vector<std::string> texts;
  for (const AddedToken& token : data.added_tokens) {
    if (condition(token)) texts.push_back(token.content);
  }
  return texts;
}

// Reports added tokens around a text other than bos_token and eos_token.
void tell_of_added_ids(const TokenizerData& data, std::vector<Fact>& facts) {
  const auto tell = [&](const std::vector<std::int32_t>& ids, const std::optional<std::string>& name,
                        fmt::format_string<const Fact&> sentence) {
    if (ids.empty() || is_just(data, ids, name)) return;
    std::vector<std::string> texts;
    for (const std::int32_t id : ids) texts.push_back(token_text(data, id).value_or(std::to_string(id)));
    facts.push_back(Fact(sentence, listed(texts)));
  };
  tell(data.before_text, data.bos_token, "llama.cpp does not put these tokens before a text: {}");
  tell(data.after_text, data.eos_token, "llama.cpp does not put these tokens after a text: {}");
}

// Tokens that can overlap another token in a text: a suffix of one is a prefix of the other. Tokens over 256 bytes,
// which take long to compare and do not occur in practice, count as overlapping.
std::vector<std::string> overlapping_tokens(const TokenizerData& data) {
  constexpr std::size_t longest_compared = 256;
  std::vector<std::string_view> sorted;
  for (const AddedToken& token : data.added_tokens) sorted.push_back(token.content);
  std::sort(sorted.begin(), sorted.end());
  const auto begins_another = [&](std::string_view end, std::string_view text) {
    auto found = std::lower_bound(sorted.begin(), sorted.end(), end);
    while (found != sorted.end() && (*found == end || *found == text)) ++found;
    return found != sorted.end() && found->starts_with(end);
  };
  return added_tokens_where(data, [&](const AddedToken& token) {
    const std::string_view text = token.content;
    if (text.size() > longest_compared) return true;
    for (std::size_t at = 1; at < text.size(); ++at) {
      if (begins_another(text.substr(at), text)) return true;
    }
    return false;
  });
}

// Hugging Face searches for `normalized` tokens in the text between the other tokens; llama.cpp always searches for the
// longest first.
std::vector<std::string> tokens_holding_a_literal_one(const TokenizerData& data) {
  const AddedTokenSplitter literal(data.added_tokens, false);
  return added_tokens_where(data, [&](const AddedToken& token) {
    bool found = false;
    if (token.normalized) {
      literal.split(token.content, {}, 0, [&](const TextPiece& piece) { found |= piece.id.has_value(); });
    }
    return found;
  });
}

void tell_of_added_tokens(const TokenizerData& data, std::vector<Fact>& facts) {
  const auto tell = [&](const std::vector<std::string>& texts, fmt::format_string<const Fact&> sentence) {
    if (!texts.empty()) facts.push_back(Fact(sentence, listed(texts)));
  };
  tell(added_tokens_where(data, [](const AddedToken& token) { return token.lstrip; }),
       "llama.cpp leaves the whitespace before these tokens in the text: {}");
  tell(added_tokens_where(data, [](const AddedToken& token) { return token.rstrip; }),
       "llama.cpp leaves the whitespace after these tokens in the text: {}");
  tell(added_tokens_where(data, [](const AddedToken& token) { return token.single_word; }),
       "llama.cpp finds these tokens inside words too: {}");
  tell(overlapping_tokens(data), "llama.cpp looks for the longest token first, if these overlap another: {}");
  tell(tokens_holding_a_literal_one(data),
       "llama.cpp looks for these tokens before the shorter tokens inside them: {}");
  tell(added_tokens_where(
           data, [](const AddedToken& token) { return !token.special && is_in(control_texts, token.content); }),
       "llama.cpp treats these tokens as control tokens by their names, and does not print them: {}");
  tell(added_tokens_where(data,
                          [](const AddedToken& token) { return token.special && is_in(plain_texts, token.content); }),
       "llama.cpp treats these tokens as text by their names, and prints them: {}");
  tell(added_tokens_where(data,
                          [](const AddedToken& token) {
                            return from_byte_level(token.content).value_or(token.content) != token.content;
                          }),
       "llama.cpp prints the spelling of these tokens, not the bytes that they represent: {}");
}

void tell_of_vocabulary(const TokenizerData& data, std::vector<Fact>& facts) {
  std::set<std::string_view> added;
  for (const AddedToken& token : data.added_tokens) added.insert(token.content);
  std::set<std::string_view> texts;
  std::vector<std::string> control;
  std::vector<std::string> no_bytes;
  for (const auto& [text, id] : data.vocab) {
    texts.insert(text);
    if (added.contains(text)) continue;
    if (is_in(control_texts, text)) control.push_back(text);
    if (!from_byte_level(text)) no_bytes.push_back(text);
  }
  std::size_t missing = 0;
  for (int byte = 0; byte < 256; ++byte) {
    missing += texts.contains(to_byte_level(std::string(1, static_cast<char>(byte)))) ? 0 : 1;
  }
  if (!control.empty()) {
    facts.push_back(
        Fact("llama.cpp treats these words as control tokens: it removes them from texts and does not print them: {}",
             listed(control)));
  }
  if (!no_bytes.empty()) {
    facts.push_back(
        Fact("llama.cpp prints these words, which represent no bytes, as '[UNK_BYTE_...]': {}", listed(no_bytes)));
  }
  if (missing > 0) {
    facts.push_back(
        data.unk_token
            ? Fact("{} bytes have no token: llama.cpp omits them, without a {}", missing, quote(*data.unk_token))
            : Fact("{} bytes have no token: llama.cpp omits them, and does not merge what is around them", missing));
  }
}

}  // namespace

std::vector<Fact> llama_cpp_differences(const TokenizerData& data, const Tokenizer& tokenizer, std::size_t vocab_size) {
  std::vector<Fact> facts;
  if (!data.use_regex) facts.push_back(Fact("llama.cpp splits texts into words, and this tokenizer does not"));
  if (data.ignore_merges)
    facts.push_back(Fact("llama.cpp merges a word step by step even if the whole word is a token"));
  if (data.add_prefix_space) {
    facts.push_back(Fact("llama.cpp puts no space before texts and after added tokens, but this tokenizer does"));
  }
  tell_of_added_ids(data, facts);
  tell_of_added_tokens(data, facts);
  tell_of_vocabulary(data, facts);
  constexpr std::size_t llama_cpp_default = 11;
  const bool default_exists = vocab_size > llama_cpp_default;
  if (default_exists && !data.eos_token) {
    facts.push_back(Fact("without an eos_token, llama.cpp ends texts at token {}, {}", llama_cpp_default,
                         quote(tokenizer.token_text(std::int32_t{llama_cpp_default}))));
  }
  if (default_exists && !data.bos_token) {
    facts.push_back(Fact("without a bos_token, llama.cpp uses token {}, {}", llama_cpp_default,
                         quote(tokenizer.token_text(std::int32_t{llama_cpp_default}))));
  }
  return facts;
}

}  // namespace minimind
