#include <fmt/ranges.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "runtime/tokenizer/tokenizer.h"
#include "tools/options/choose_tokenizer.h"
#include "tools/options/command_line.h"
#include "tools/options/help.h"
#include "tools/options/lines.h"
#include "tools/options/options.h"
#include "tools/terminal/language.h"
#include "tools/terminal/note.h"
#include "tools/terminal/standard_output.h"
#include "weights/base/error.h"
#include "weights/io/json_fields.h"

namespace minimind {
namespace {

using Json = nlohmann::json;

struct TokenizeOptions {
  std::string model;
  std::string tokenizer;
  TextOptions text;
  bool add_special = false;
  bool decode = false;
  bool skip_special = false;
  bool jsonl = false;
};

void warn_of_unknown(const Tokenizer& tokenizer, const std::vector<std::int32_t>& ids) {
  for (const std::int32_t id : ids) {
    if (tokenizer.has(id)) continue;
    note("id {} is not in the vocabulary and has no text", id);
    return;
  }
}

std::string decode(const Tokenizer& tokenizer, const std::vector<std::int32_t>& ids, bool skip_special) {
  warn_of_unknown(tokenizer, ids);
  return tokenizer.decode(ids, skip_special);
}

bool is_32_bit(const Json& value) {
  return value.is_number_integer() && value >= std::numeric_limits<std::int32_t>::min() &&
         value <= std::numeric_limits<std::int32_t>::max();
}

std::vector<std::int32_t> encode(const Tokenizer& tokenizer, const TokenizeOptions& options, const std::string& text) {
  return options.add_special ? tokenizer.encode_with_special(text) : tokenizer.encode(text);
}

// Converts a JSON string to an array of ids, or back with --decode.
std::string convert_line(const Tokenizer& tokenizer, const TokenizeOptions& options, const std::string& line,
                         std::size_t number) {
  const std::string source = fmt::format("line {} of the input", number);
  const char* const wanted = options.decode ? "a JSON array of token ids" : "a JSON string";
  const Json json = parse_json<Json>(line, source, 16, wanted);
  const bool fits =
      options.decode ? json.is_array() && std::all_of(json.begin(), json.end(), is_32_bit) : json.is_string();
  if (!fits) {
    throw Error(fmt::format("{}: is {}, expected {}", source, describe(json), wanted));
  }
  if (!options.decode) return dump_json(Json(encode(tokenizer, options, json.get_ref<const std::string&>())));
  return dump_json(Json(decode(tokenizer, json.get<std::vector<std::int32_t>>(), options.skip_special)));
}

int run_tokenize(const TokenizeOptions& options) {
  if (options.skip_special && !options.decode) throw UsageError("--skip-special is for --decode; omit it or give both");
  if (options.add_special && options.decode)
    throw UsageError("--add-special is for text, not for --decode; omit one of them");
  const Tokenizer tokenizer = require_tokenizer(options.tokenizer, options.model);
  const std::string input = options.text.read();
  if (options.jsonl) {
    for_each_line(input, [&](const std::string& line, std::size_t number) {
      print_output("{}\n", convert_line(tokenizer, options, line, number));
    });
  } else if (options.decode) {
    print_output("{}", decode(tokenizer, parse_token_ids(input, "the input"), options.skip_special));
  } else {
    print_output("{}\n", fmt::join(encode(tokenizer, options, input), ","));
  }
  return 0;
}

}  // namespace

Command add_tokenize(CommandOptions& command) {
  auto options = std::make_shared<TokenizeOptions>();
  add_model(
      command, options->model,
      bilingual("checkpoint whose tokenizer is used (default: the demo)", "使用此检查点的分词器（默认：演示模型）"));
  add_tokenizer(command, options->tokenizer);
  options->text.add_to(command);
  command.add_flag(
      "--add-special", options->add_special, prompt_group,
      bilingual("add what the tokenizer's post-processor puts around a text (default: the ids of the text alone)",
                "加上分词器的后处理器在文本前后添加的词元（默认：只输出文本本身的 id）"));
  command.add_flag("--decode", options->decode, common_group,
                   bilingual("turn token ids into text", "将词元 id 还原为文本"));
  command.add_flag("--skip-special", options->skip_special, output_group,
                   bilingual("omit special tokens from the text", "文本中省略特殊词元"));
  command.add_flag("--jsonl", options->jsonl, prompt_group,
                   bilingual("each line is a JSON string, or with --decode an array of ids",
                             "每行一个 JSON 字符串；用 --decode 时每行一个 id 数组"));
  return [options] { return run_tokenize(*options); };
}

}  // namespace minimind
