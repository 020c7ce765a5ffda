#include "runtime/tokenizer/tokenizer_json.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "weights/base/error.h"
#include "weights/io/json_fields.h"
#include "weights/io/path.h"

namespace minimind {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<std::int32_t>;

bool is_id(const Json& value) {
  return value.is_number_unsigned() && value.get<std::uint64_t>() <= std::numeric_limits<std::int32_t>::max();
}

class PostProcessorReader {
 public:
  explicit PostProcessorReader(TokenizerData& data) : data_(data) {}

  void read(const Json& processor, const std::string& name) {
    const JsonFields fields(processor, data_.source, name);
    const std::string type = fields.required_text("type");
    if (type == "ByteLevel") return fields.allow_only({"type", "add_prefix_space", "trim_offsets", "use_regex"});
    if (type == "Sequence") return read_sequence(fields, name);
    if (adds_tokens()) fields.fail("type", "ByteLevel after a processor that adds tokens");
    if (type == "TemplateProcessing") return read_template(fields);
    if (type == "BertProcessing" || type == "RobertaProcessing") return read_bert(fields);
    fields.fail("type", "ByteLevel, TemplateProcessing, BertProcessing, RobertaProcessing or Sequence");
  }

 private:
  bool adds_tokens() const { return !data_.before_text.empty() || !data_.after_text.empty(); }

  void read_sequence(const JsonFields& fields, const std::string& name) {
    fields.allow_only({"type", "processors"});
    const Json& processors = fields.get("processors");
    if (!processors.is_array()) fields.fail("processors", "an array of processors");
    for (std::size_t i = 0; i < processors.size(); ++i) read(processors[i], fmt::format("{}.processors[{}]", name, i));
  }

  // [CLS] text [SEP], regardless of the names of the two tokens.
  void read_bert(const JsonFields& fields) {
    fields.allow_only({"type", "sep", "cls", "trim_offsets", "add_prefix_space"});
    data_.before_text = {token_and_id(fields, "cls")};
    data_.after_text = {token_and_id(fields, "sep")};
  }

  static std::int32_t token_and_id(const JsonFields& fields, const char* key) {
    const Json& value = fields.get(key);
    const bool fits = value.is_array() && value.size() == 2 && value[0].is_string() && is_id(value[1]);
    if (!fits) fields.fail(key, "a token and its id, as [\"</s>\", 2]");
    return value[1].get<std::int32_t>();
  }

  void read_template(const JsonFields& fields) {
    fields.allow_only({"type", "single", "pair", "special_tokens"});
    const Json& pieces = fields.get("single");
    if (!pieces.is_array()) fields.fail("single", "an array of tokens with the text among them");
    bool text_seen = false;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const JsonFields piece(pieces[i], data_.source, fmt::format("{}[{}]", fields.name_of("single"), i));
      piece.allow_only({"Sequence", "SpecialToken"});
      if (piece.get("Sequence").is_null()) {
        const Ids ids = special_token(fields, piece.required_object("SpecialToken").required_text("id"));
        Ids& where = text_seen ? data_.after_text : data_.before_text;
        if (ids.size() > most_ids_around - where.size())
          fields.fail("single", fmt::format("at most {} ids before the text and after it", most_ids_around));
        where.insert(where.end(), ids.begin(), ids.end());
      } else {
        if (text_seen) piece.fail("Sequence", "the text once");
        if (piece.required_object("Sequence").required_text("id") != "A")
          piece.required_object("Sequence").fail("id", "A, which is the text");
        text_seen = true;
      }
    }
    if (!text_seen) fields.fail("single", "a template with the text, {\"Sequence\": {\"id\": \"A\"}}");
  }

  // A token of a template may represent several ids.
  Ids special_token(const JsonFields& fields, const std::string& name) const {
    const JsonFields token = fields.required_object("special_tokens").required_object(name);
    const Json& ids = token.get("ids");
    const bool fits = ids.is_array() && !ids.empty() && std::all_of(ids.begin(), ids.end(), is_id);
    if (!fits) token.fail("ids", "an array of token ids, 0 or more each");
    return ids.get<Ids>();
  }

  TokenizerData& data_;
};

// Reads the post_processor of a tokenizer.json, `file`, into data.before_text and data.after_text: the ids around a
// single text. Its options for offsets, types and pairs of texts change neither ids nor text. Throws Error, naming file
// and field, for a kind of processor that tokenizer_json.h does not list, and for a template without exactly one text.
// Also throws Error for a Sequence with a processor of text after a processor that adds tokens: tokenizers then treats
// the added tokens as a second text.
void read_post_processor(const JsonFields& file, TokenizerData& data) {
  if (!file.get("post_processor").is_null())
    PostProcessorReader(data).read(file.get("post_processor"), "post_processor");
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

// Tokens and merges, which are nearly all of the file: each is taken as it is read, and never part of a JSON value.
class VocabReader {
 public:
  explicit VocabReader(TokenizerData& data) : data_(data) {
    constexpr std::size_t usual_entries = 8192;  // a vector that grows is copied, each time to new pages
    data_.vocab.reserve(usual_entries);
    data_.merges.reserve(usual_entries);
  }

  void take(const std::string& of, const std::string& name, const Json& value) {
    if (of == "vocab") take_token(name, value);
    if (of == "merges") take_merge(value);
  }

 private:
  void take_token(const std::string& text, const Json& value) {
    if (data_.vocab.size() == most_tokenizer_entries) reject("vocab", "tokens");
    if (!is_id(value)) {
      const Json vocab{{text, value}};
      JsonFields(vocab, data_.source, "model.vocab").fail(text, "a token id, 0 or more");
    }
    data_.vocab.emplace_back(text, value.get<std::int32_t>());
  }

  void take_merge(const Json& value) {
    if (merges_ == most_tokenizer_entries) reject("merges", "merges");
    // The first line of a merges.txt, which some exports copy and Hugging Face skips too.
    const bool is_heading = value.is_string() && value.get_ref<const std::string&>().starts_with("#version");
    auto merge = is_heading ? std::nullopt : as_merge(value);
    if (!merge && !is_heading) {
      throw Error(fmt::format(R"({}: model.merges[{}] is {}, expected two tokens, as "a b" or ["a", "b"])",
                              data_.source, merges_, describe(value)));
    }
    if (merge) data_.merges.push_back(std::move(*merge));
    ++merges_;
  }

  [[noreturn]] void reject(const char* field, const char* what) const {
    throw Error(fmt::format("{}: model.{} has more {}, expected at most {}", data_.source, field, what,
                            most_tokenizer_entries));
  }

  TokenizerData& data_;
  std::size_t merges_ = 0;
};

void read_model(const JsonFields& model, TokenizerData& data) {
  model.allow_only({"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
                    "byte_fallback", "ignore_merges", "vocab", "merges"});
  if (model.text("type").value_or("BPE") != "BPE") model.fail("type", "BPE: no other model is supported");
  const Json& dropout = model.get("dropout");
  if (!dropout.is_null() && dropout != 0) model.fail("dropout", "null: random merges are not supported");
  for (const char* const affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!model.text(affix).value_or("").empty()) model.fail(affix, "null: it is not supported");
  }
  if (model.flag_or("byte_fallback", false)) model.fail("byte_fallback", "false: it is not supported");
  data.unk_token = model.text("unk_token");
  data.fuse_unk = model.flag_or("fuse_unk", false);
  data.ignore_merges = model.flag_or("ignore_merges", false);
  model.required_object("vocab");
  if (!model.get("merges").is_array()) model.fail("merges", "an array of merges");
}

void read_added_tokens(const JsonFields& file, TokenizerData& data) {
  const Json& tokens = file.get("added_tokens");
  if (tokens.is_null()) return;
  if (!tokens.is_array()) file.fail("added_tokens", "an array of added tokens");
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const JsonFields token(tokens[i], data.source, fmt::format("added_tokens[{}]", i));
    token.allow_only({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
    if (!is_id(token.get("id"))) token.fail("id", "a token id, 0 or more");
    data.added_tokens.push_back({.id = token.get("id").get<std::int32_t>(),
                                 .content = token.required_text("content"),
                                 .single_word = token.required_flag("single_word"),
                                 .lstrip = token.required_flag("lstrip"),
                                 .rstrip = token.required_flag("rstrip"),
                                 .normalized = token.required_flag("normalized"),
                                 .special = token.required_flag("special")});
  }
}

// The ByteLevel that a part of the pipeline is, or that is alone in the Sequence that it is.
JsonFields byte_level(const JsonFields& file, const std::string& source, std::string_view key, std::string_view parts) {
  const auto is = [](const Json& part, const char* type) {
    return part.is_object() && part.contains("type") && part["type"] == type;
  };
  const Json* part = &file.get(key);
  std::string name(key);
  if (is(*part, "Sequence")) {
    const JsonFields sequence = file.required_object(key);
    sequence.allow_only({"type", parts});
    const Json& list = sequence.get(parts);
    if (list.is_array() && list.size() == 1) part = &list[0];
    name += fmt::format(".{}[0]", parts);
  }
  if (!is(*part, "ByteLevel")) file.fail(key, "an object of type 'ByteLevel': no other is supported");
  JsonFields fields(*part, source, name);
  fields.allow_only({"type", "add_prefix_space", "trim_offsets", "use_regex"});
  return fields;
}

// A normal form, or a Sequence of one or none.
void read_normalizer(const JsonFields& file, TokenizerData& data) {
  const Json& normalizer = file.get("normalizer");
  const Json no_parts{{"type", "Sequence"}, {"normalizers", Json::array()}};
  if (normalizer.is_null() || normalizer == no_parts) return;
  for (const std::string_view name : normal_form_names) {
    const Json form{{"type", name}};
    if (normalizer == form || normalizer == Json{{"type", "Sequence"}, {"normalizers", Json::array({form})}})
      data.normal_form = normal_form_of(name);
  }
  if (!data.normal_form) file.fail("normalizer", "null, NFC, NFD, NFKC, NFKD or a Sequence of one of these");
}

// The decoder's options change neither ids nor text, only offsets. Truncation and padding are the settings of the last
// training script; transformers, too, ignores them unless a call requests them.
void read_pipeline(const JsonFields& file, TokenizerData& data) {
  if (file.text("version").value_or("1.0") != "1.0") file.fail("version", "\"1.0\"");
  read_normalizer(file, data);
  const JsonFields pre_tokenizer = byte_level(file, data.source, "pre_tokenizer", "pretokenizers");
  byte_level(file, data.source, "decoder", "decoders");
  read_post_processor(file, data);
  data.add_prefix_space = pre_tokenizer.required_flag("add_prefix_space");
  data.use_regex = pre_tokenizer.flag_or("use_regex", true);
  data.truncates = !file.get("truncation").is_null();
}

// A token of tokenizer_config.json: its text, or an object like those of added_tokens.
std::optional<std::string> read_named_token(const JsonFields& config, std::string_view key) {
  if (config.get(key).is_object()) return config.required_object(key).required_text("content");
  return config.text(key);
}

void read_tokenizer_config(const std::string& path, TokenizerData& data) {
  const Json json = read_json_object(path);
  const JsonFields config(json, path, "");
  data.bos_token = read_named_token(config, "bos_token");
  data.eos_token = read_named_token(config, "eos_token");
  data.pad_token = read_named_token(config, "pad_token");
  data.config_unk_token = read_named_token(config, "unk_token");
}

}  // namespace

TokenizerData read_tokenizer_json(const std::string& path) {
  const std::string file = is_folder(path) ? join_path(path, "tokenizer.json") : path;
  TokenizerData data;
  data.source = file;
  VocabReader vocab(data);
  const Json json = read_json_inside(file, "model", [&](const auto&... value) { vocab.take(value...); });
  const JsonFields fields(json, data.source, "");
  fields.allow_only({"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
                     "post_processor", "decoder", "model"});
  read_pipeline(fields, data);
  read_added_tokens(fields, data);
  read_model(fields.required_object("model"), data);

  const std::string config = join_path(parent_path(file), "tokenizer_config.json");
  if (is_there(config)) read_tokenizer_config(config, data);
  return data;
}

}  // namespace minimind
