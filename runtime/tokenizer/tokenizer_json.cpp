#include "runtime/tokenizer/tokenizer_json.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>

#include "runtime/text/utf8.h"
#include "runtime/tokenizer/post_processor_json.h"
#include "weights/io/error.h"
#include "weights/io/json_fields.h"
#include "weights/io/mapped_file.h"

namespace minimind {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::string_view merge_wanted = "two tokens, as \"a b\" or [\"a\", \"b\"]";

std::optional<std::int32_t> as_token_id(const Json& value) {
  constexpr std::uint64_t max_id = std::numeric_limits<std::int32_t>::max();
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > max_id) return std::nullopt;
  return value.get<std::int32_t>();
}

void read_vocab(const JsonFields& model, TokenizerData& data) {
  const JsonFields vocab = model.object("vocab");
  const Json& tokens = model.get("vocab");
  data.vocab.reserve(tokens.size());
  for (const auto& [text, value] : tokens.items()) {
    const std::optional<std::int32_t> id = as_token_id(value);
    if (!id) vocab.fail(text, "a token id, 0 or more");
    data.vocab.emplace_back(text, *id);
  }
}

std::optional<std::pair<std::string, std::string>> as_merge(const Json& value) {
  if (value.is_array() && value.size() == 2 && value[0].is_string() && value[1].is_string()) {
    return std::pair(value[0].get<std::string>(), value[1].get<std::string>());
  }
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  const std::size_t space = text.find(' ');
  if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) return std::nullopt;
  return std::pair(text.substr(0, space), text.substr(space + 1));
}

void read_merges(const JsonFields& model, TokenizerData& data) {
  const Json& merges = model.get("merges");
  if (!merges.is_array()) model.fail("merges", "an array of merges");
  data.merges.reserve(merges.size());
  for (std::size_t i = 0; i < merges.size(); ++i) {
    // The first line of a merges.txt, which some exports carry over and Hugging Face skips too.
    const bool is_heading = merges[i].is_string() && merges[i].get_ref<const std::string&>().starts_with("#version");
    if (is_heading) continue;
    const auto merge = as_merge(merges[i]);
    if (!merge) {
      throw Error(fmt::format("{}: model.merges[{}]: found {}, expected {}", data.source, i, describe(merges[i]),
                              merge_wanted));
    }
    data.merges.push_back(*merge);
  }
}

void read_model(const JsonFields& model, TokenizerData& data) {
  model.allow_only({"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
                    "byte_fallback", "ignore_merges", "vocab", "merges"});
  if (model.optional_text("type").value_or("BPE") != "BPE") model.fail("type", "BPE: no other model is supported");
  const Json& dropout = model.get("dropout");
  if (!dropout.is_null() && dropout != 0) model.fail("dropout", "null: random merges are not supported");
  for (const char* const affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!model.optional_text(affix).value_or("").empty()) model.fail(affix, "null: it is not supported");
  }
  if (model.flag("byte_fallback", false)) model.fail("byte_fallback", "false: it is not supported");
  data.unk_token = model.optional_text("unk_token");
  data.fuse_unk = model.flag("fuse_unk", false);
  data.ignore_merges = model.flag("ignore_merges", false);
  read_vocab(model, data);
  read_merges(model, data);
}

void read_added_tokens(const JsonFields& file, TokenizerData& data) {
  const Json& tokens = file.get("added_tokens");
  if (tokens.is_null()) return;
  if (!tokens.is_array()) file.fail("added_tokens", "an array of added tokens");
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const JsonFields token(tokens[i], data.source, fmt::format("added_tokens[{}]", i));
    token.allow_only({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
    const std::optional<std::int32_t> id = as_token_id(token.get("id"));
    if (!id) token.fail("id", "a token id, 0 or more");
    data.added_tokens.push_back({.id = *id,
                                 .content = token.text("content"),
                                 .single_word = token.flag("single_word"),
                                 .lstrip = token.flag("lstrip"),
                                 .rstrip = token.flag("rstrip"),
                                 .normalized = token.flag("normalized"),
                                 .special = token.flag("special")});
  }
}

void require_byte_level(const JsonFields& file, std::string_view key) {
  const Json& part = file.get(key);
  if (!part.is_object() || !part.contains("type") || part["type"] != "ByteLevel") {
    file.fail(key, "an object of type 'ByteLevel': no other is supported");
  }
  file.object(key).allow_only({"type", "add_prefix_space", "trim_offsets", "use_regex"});
}

// The decoder has options too, but none that changes ids or text: they move offsets. Truncation and padding are what
// the last training script had switched on when it saved; transformers, too, leaves them off until a call asks for
// them.
void read_pipeline(const JsonFields& file, TokenizerData& data) {
  if (file.optional_text("version").value_or("1.0") != "1.0") file.fail("version", "\"1.0\"");
  if (!file.get("normalizer").is_null()) {
    file.fail("normalizer", "null: it is not supported; set it to null if it is not needed");
  }
  require_byte_level(file, "pre_tokenizer");
  require_byte_level(file, "decoder");
  read_post_processor(file, data);
  const JsonFields pre_tokenizer = file.object("pre_tokenizer");
  data.add_prefix_space = pre_tokenizer.flag("add_prefix_space");
  data.use_regex = pre_tokenizer.flag("use_regex", true);
}

// A token of tokenizer_config.json: its text, or an object that spells it out as added_tokens does.
std::optional<std::string> read_named_token(const JsonFields& config, std::string_view key) {
  if (config.get(key).is_object()) return config.object(key).text("content");
  return config.optional_text(key);
}

std::optional<std::string> find_template(const Json& list, std::string_view name) {
  for (const Json& entry : list) {
    if (!entry.is_object() || entry.value("name", Json()) != name) continue;
    const auto source = entry.find("template");
    if (source != entry.end() && source->is_string()) return source->get<std::string>();
  }
  return std::nullopt;
}

// One template, or a list of them by name, of which transformers takes "tool_use" or "default".
void read_chat_template(const JsonFields& config, TokenizerData& data) {
  const Json& value = config.get("chat_template");
  if (!value.is_array()) {
    data.chat_template = config.optional_text("chat_template");
    return;
  }
  data.chat_template = find_template(value, "default");
  data.tool_use_template = find_template(value, "tool_use");
  if (!data.chat_template) config.fail("chat_template", "a string, or an array with a template named \"default\"");
}

void read_tokenizer_config(const std::string& path, TokenizerData& data) {
  const Json json = read_json_object(path);
  const JsonFields config(json, path, "");
  data.bos_token = read_named_token(config, "bos_token");
  data.eos_token = read_named_token(config, "eos_token");
  data.pad_token = read_named_token(config, "pad_token");
  data.config_unk_token = read_named_token(config, "unk_token");
  data.chat_template_source = path + ": chat_template";
  read_chat_template(config, data);
}

std::string read_template_file(const std::string& path) {
  const auto file = MappedFile::open(path);
  const std::string text(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  if (!is_utf8(text)) throw Error(fmt::format("{}: is not UTF-8, expected a Jinja template", path));
  return text;
}

// The files that newer versions of transformers write, which go before what the config says.
void read_template_files(const fs::path& folder, TokenizerData& data) {
  std::error_code ignored;
  const fs::path file = folder / "chat_template.jinja";
  if (!fs::exists(file, ignored)) return;
  data.chat_template_source = file.string();
  data.chat_template = read_template_file(data.chat_template_source);
  const fs::path tool_use = folder / "additional_chat_templates" / "tool_use.jinja";
  data.tool_use_template.reset();
  if (fs::exists(tool_use, ignored)) data.tool_use_template = read_template_file(tool_use.string());
}

}  // namespace

TokenizerData read_tokenizer_json(const std::string& path) {
  std::error_code ignored;  // what cannot be looked at is opened as a file, which reports why
  const fs::path file = fs::is_directory(path, ignored) ? fs::path(path) / "tokenizer.json" : fs::path(path);
  const Json json = read_json_object(file.string());
  TokenizerData data;
  data.source = file.string();
  const JsonFields fields(json, data.source, "");
  fields.allow_only({"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
                     "post_processor", "decoder", "model"});
  read_pipeline(fields, data);
  read_added_tokens(fields, data);
  read_model(fields.object("model"), data);

  const fs::path config = file.parent_path() / "tokenizer_config.json";
  if (fs::exists(config, ignored)) read_tokenizer_config(config.string(), data);
  read_template_files(file.parent_path(), data);
  return data;
}

}  // namespace minimind
