#include "runtime/tokenizer/tokenizer_json_writer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "weights/io/json_fields.h"

namespace minimind {
namespace {

// Keeps the order of fields, and looks a key up in linear time: for small objects.
using OrderedJson = nlohmann::ordered_json;

constexpr int indent = 2;

OrderedJson or_null(const std::optional<std::string>& text) {
  return text ? OrderedJson(*text) : OrderedJson(nullptr);
}

// The template, or both by name if there is one for tools.
OrderedJson chat_template_of(const TokenizerData& data) {
  if (!data.tool_use_template) return or_null(data.chat_template);
  return OrderedJson::array({{{"name", "default"}, {"template", or_null(data.chat_template)}},
                             {{"name", "tool_use"}, {"template", *data.tool_use_template}}});
}

OrderedJson added_tokens(const TokenizerData& data) {
  OrderedJson tokens = OrderedJson::array();
  for (const AddedToken& token : data.added_tokens) {
    tokens.push_back({{"id", token.id},
                      {"content", token.content},
                      {"single_word", token.single_word},
                      {"lstrip", token.lstrip},
                      {"rstrip", token.rstrip},
                      {"normalized", token.normalized},
                      {"special", token.special}});
  }
  return tokens;
}

OrderedJson byte_level(bool add_prefix_space, bool use_regex) {
  return {
      {"type", "ByteLevel"}, {"add_prefix_space", add_prefix_space}, {"trim_offsets", true}, {"use_regex", use_regex}};
}

// A template that puts the ids around a text; of two texts, around each.
OrderedJson post_processor(const TokenizerData& data) {
  if (data.before_text.empty() && data.after_text.empty()) return nullptr;
  OrderedJson special = OrderedJson::object();
  const auto name_of = [&](std::int32_t id) { return token_text(data, id).value_or(std::to_string(id)); };
  const auto add_ids = [&](OrderedJson& pieces, const std::vector<std::int32_t>& ids, int type) {
    for (const std::int32_t id : ids) {
      const std::string name = name_of(id);
      pieces.push_back({{"SpecialToken", {{"id", name}, {"type_id", type}}}});
      special[name] = {{"id", name}, {"ids", OrderedJson::array({id})}, {"tokens", OrderedJson::array({name})}};
    }
  };
  const auto add_text = [&](OrderedJson& pieces, const char* text, int type) {
    add_ids(pieces, data.before_text, type);
    pieces.push_back({{"Sequence", {{"id", text}, {"type_id", type}}}});
    add_ids(pieces, data.after_text, type);
  };
  OrderedJson single = OrderedJson::array();
  add_text(single, "A", 0);
  OrderedJson pair = single;
  add_text(pair, "B", 1);
  return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", special}};
}

// By id, as Hugging Face writes it. OrderedJson would take quadratic time in the number of tokens.
std::string vocab_text(const TokenizerData& data) {
  auto vocab = data.vocab;
  std::sort(vocab.begin(), vocab.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  std::string text = "{";
  for (const auto& [token, id] : vocab) {
    text += text.size() > 1 ? ",\n      " : "\n      ";
    text += dump_json(OrderedJson(token)) + ": " + std::to_string(id);
  }
  return text + "\n    }";
}

// As "a b", which every version of tokenizers reads, if that is unambiguous.
bool can_be_joined(const std::pair<std::string, std::string>& merge) {
  const auto& [left, right] = merge;
  return left.find(' ') == std::string::npos && right.find(' ') == std::string::npos && !left.starts_with("#version");
}

std::string merges_text(const TokenizerData& data) {
  const bool joined = std::all_of(data.merges.begin(), data.merges.end(), can_be_joined);
  std::string text = "[";
  for (const auto& [left, right] : data.merges) {
    text += text.size() > 1 ? ",\n      " : "\n      ";
    text += dump_json(joined ? OrderedJson(left + ' ' + right) : OrderedJson({left, right}));
  }
  return text + "\n    ]";
}

}  // namespace

std::optional<std::string> token_text(const TokenizerData& data, std::int32_t id) {
  for (const AddedToken& token : data.added_tokens) {
    if (token.id == id) return token.content;
  }
  for (const auto& [text, token_id] : data.vocab) {
    if (token_id == id) return text;
  }
  return std::nullopt;
}

bool is_just(const TokenizerData& data, const std::vector<std::int32_t>& ids, const std::optional<std::string>& name) {
  return name && ids.size() == 1 && token_text(data, ids.front()) == name;
}

std::string tokenizer_json(const TokenizerData& data) {
  // The two long fields are last, after a text without its closing braces.
  const OrderedJson file = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", added_tokens(data)},
      {"normalizer", data.normal_form ? OrderedJson{{"type", name_of(*data.normal_form)}} : nullptr},
      {"pre_tokenizer", byte_level(data.add_prefix_space, data.use_regex)},
      {"post_processor", post_processor(data)},
      {"decoder", byte_level(true, true)},
      {"model",
       {{"type", "BPE"},
        {"dropout", nullptr},
        {"unk_token", or_null(data.unk_token)},
        {"continuing_subword_prefix", nullptr},
        {"end_of_word_suffix", nullptr},
        {"fuse_unk", data.fuse_unk},
        {"byte_fallback", false},
        {"ignore_merges", data.ignore_merges}}}};
  std::string text = dump_json(file, indent);
  text.resize(text.size() - std::string_view("\n  }\n}").size());
  return text + ",\n    \"vocab\": " + vocab_text(data) + ",\n    \"merges\": " + merges_text(data) + "\n  }\n}\n";
}

std::string tokenizer_config_json(const TokenizerData& data) {
  OrderedJson other_special = OrderedJson::array();
  for (const AddedToken& token : data.added_tokens) {
    const bool named = token.content == data.bos_token || token.content == data.eos_token ||
                       token.content == data.pad_token || token.content == data.config_unk_token;
    if (token.special && !named) other_special.push_back(token.content);
  }
  const OrderedJson config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                              {"add_bos_token", is_just(data, data.before_text, data.bos_token)},
                              {"add_eos_token", is_just(data, data.after_text, data.eos_token)},
                              {"add_prefix_space", data.add_prefix_space},
                              {"clean_up_tokenization_spaces", false},
                              {"bos_token", or_null(data.bos_token)},
                              {"eos_token", or_null(data.eos_token)},
                              {"pad_token", or_null(data.pad_token)},
                              {"unk_token", or_null(data.config_unk_token)},
                              {"additional_special_tokens", std::move(other_special)},
                              {"chat_template", chat_template_of(data)}};
  return dump_json(config, indent) + '\n';
}

}  // namespace minimind
