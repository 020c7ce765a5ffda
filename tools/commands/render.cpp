#include <fmt/ranges.h>

#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "runtime/chat/chat_template.h"
#include "runtime/tokenizer/files.h"
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
#include "weights/checkpoint/open_checkpoint.h"
#include "weights/io/input_file.h"
#include "weights/io/json_fields.h"

namespace minimind {
namespace {

struct RenderOptions {
  std::string model;
  std::string tokenizer;
  std::string chat_template;
  TextOptions text;
  bool jsonl = false;
  bool ids = false;
  bool plain_content = false;
};

std::optional<TokenizerData> read_tokenizer_of(const RenderOptions& options) {
  if (!options.tokenizer.empty()) return read_tokenizer(options.tokenizer);
  if (!options.chat_template.empty() && options.model.empty()) return std::nullopt;
  const auto found = find_tokenizer(model_path(options.model));
  return found ? std::optional(read_tokenizer(*found)) : std::nullopt;
}

// Returns the template given, the tokenizer's, or that of the model's family.
ChatTemplate load_template(const RenderOptions& options, const std::optional<TokenizerData>& tokenizer) {
  if (auto found = find_template(options.chat_template, tokenizer ? &*tokenizer : nullptr)) {
    return std::move(found->chat_template);
  }
  if (!options.tokenizer.empty() && options.model.empty()) {
    throw Error(
        fmt::format("{}: has no chat template; give one with --template, or name the model with -m to use its family's",
                    options.tokenizer));
  }
  const std::string path = model_path(options.model);
  const Family family = open_checkpoint(path, {}).config.family;
  note("{}: has no chat template; using that of family {}", path, name_of(family));
  return ChatTemplate::of_family(family, tokenizer ? special_tokens_of(*tokenizer) : SpecialTokens());
}

// Turns conversations into prompts, as text or as ids.
class Renderer {
 public:
  explicit Renderer(const RenderOptions& options) : Renderer(options, read_tokenizer_of(options)) {}

  std::string text(const ChatInput& conversation) const { return template_.render(conversation, now_).bytes; }

  std::vector<std::int32_t> ids(const ChatInput& conversation) const {
    const MarkedText prompt = template_.render(conversation, now_);
    return tokenizer_->encode_with_special(prompt.bytes, plain_content_ ? prompt.marks : TextMarks());
  }

 private:
  Renderer(const RenderOptions& options, const std::optional<TokenizerData>& tokenizer)
      : template_(load_template(options, tokenizer)), plain_content_(options.plain_content) {
    if (!options.ids) return;
    if (!tokenizer) throw UsageError("--ids requires a tokenizer; name it with --tokenizer, or a model with -m");
    tokenizer_.emplace(*tokenizer);
  }

  ChatTemplate template_;
  std::optional<Tokenizer> tokenizer_;  // for ids
  bool plain_content_;
  std::time_t now_ = std::time(nullptr);
};

int run_render(const RenderOptions& options) {
  if (options.plain_content && !options.ids) {
    throw UsageError("--plain-content changes the ids of the prompt, not its text; add --ids");
  }
  const Renderer renderer(options);
  const std::string& file = options.text.file;
  const std::string input = options.text.read();
  if (!file.empty()) check_not_mistaken(input, input.size(), file);
  if (!options.jsonl) {
    const ChatInput conversation = parse_chat_input(input, file.empty() ? "the input" : file);
    options.ids ? print_output("{}\n", fmt::join(renderer.ids(conversation), ","))
                : put_output(renderer.text(conversation));
    return 0;
  }
  for_each_line(input, [&](const std::string& line, std::size_t number) {
    const std::string place = place_of_line(file, number);
    const ChatInput conversation = parse_chat_input(line, place);
    try {
      const nlohmann::json result =
          options.ids ? nlohmann::json(renderer.ids(conversation)) : nlohmann::json(renderer.text(conversation));
      print_output("{}\n", dump_json(result));
    } catch (const Error& error) {
      throw Error(fmt::format("{}: {}", place, error.what()));
    }
  });
  return 0;
}

}  // namespace

Command add_render(CommandOptions& command) {
  auto options = std::make_shared<RenderOptions>();
  add_model(command, options->model,
            bilingual("checkpoint whose chat template is used (default: the demo)",
                      "使用此检查点的对话模板（默认：演示模型）"));
  add_tokenizer(command, options->tokenizer);
  add_template(command, options->chat_template);
  options->text.add_to(command);
  command.add_flag("--jsonl", options->jsonl, prompt_group,
                   bilingual("one conversation per line in, one prompt per line out, as a JSON string or array of ids",
                             "每行输入一个对话，每行输出一个提示词（JSON 字符串或 id 数组）"));
  command.add_flag(
      "--ids", options->ids, output_group,
      bilingual("print the token ids of the prompt instead of its text", "输出提示词的词元 id，而不是文本"));
  add_plain_content(command, options->plain_content);
  command.footer(bilingual(
      "A conversation is a JSON object: {\"messages\": [{\"role\": \"user\", \"content\": \"...\"}], \"tools\": [...], "
      "\"add_generation_prompt\": true, \"open_thinking\": true}. Only messages is required; other names are variables "
      "of the template. MiniMind's data, {\"conversations\": [...]} with the tools in a system message, is read too.",
      "对话是一个 JSON 对象：{\"messages\": [{\"role\": \"user\", \"content\": \"...\"}], \"tools\": [...], "
      "\"add_generation_prompt\": true, \"open_thinking\": true}。只有 messages 必填；其他名称是模板的变量。也可读 "
      "MiniMind 的数据：{\"conversations\": [...]}，工具写在系统消息中。"));
  return [options] { return run_render(*options); };
}

}  // namespace minimind
