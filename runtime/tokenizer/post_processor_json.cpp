#include "runtime/tokenizer/post_processor_json.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

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
    const std::string type = fields.text("type");
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

  // [CLS] text [SEP], whatever the two are called.
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
        const Ids ids = special_token(fields, piece.object("SpecialToken").text("id"));
        Ids& where = text_seen ? data_.after_text : data_.before_text;
        where.insert(where.end(), ids.begin(), ids.end());
      } else {
        if (text_seen) piece.fail("Sequence", "the text once");
        if (piece.object("Sequence").text("id") != "A") piece.object("Sequence").fail("id", "A, which is the text");
        text_seen = true;
      }
    }
    if (!text_seen) fields.fail("single", "a template that holds the text, {\"Sequence\": {\"id\": \"A\"}}");
  }

  // A token of a template may stand for several ids.
  Ids special_token(const JsonFields& fields, const std::string& name) const {
    const JsonFields token = fields.object("special_tokens").object(name);
    const Json& ids = token.get("ids");
    const bool fits = ids.is_array() && !ids.empty() && std::all_of(ids.begin(), ids.end(), is_id);
    if (!fits) token.fail("ids", "an array of token ids, 0 or more each");
    return ids.get<Ids>();
  }

  TokenizerData& data_;
};

}  // namespace

void read_post_processor(const JsonFields& file, TokenizerData& data) {
  if (!file.get("post_processor").is_null())
    PostProcessorReader(data).read(file.get("post_processor"), "post_processor");
}

}  // namespace minimind
