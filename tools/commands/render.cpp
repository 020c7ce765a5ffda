#include <fmt/core.h>

#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "runtime/chat/chat_template.h"
#include "runtime/tokenizer/files.h"
#include "tools/options/choose_tokenizer.h"
#include "tools/options/commands.h"
#include "tools/options/find_template.h"
#include "tools/options/lines.h"
#include "tools/options/options.h"
#include "tools/terminal/note.h"
#include "weights/checkpoint/checkpoint.h"
#include "weights/io/error.h"
#include "weights/io/json_fields.h"
#include "weights/io/mistaken_file.h"

namespace minimind {
namespace {

struct RenderOptions {
  std::string model;
  std::string tokenizer;
  std::string chat_template;
  TextOptions text;
  bool jsonl = false;
};

std::optional<TokenizerData> read_tokenizer_of(const RenderOptions& options) {
  if (!options.tokenizer.empty()) return read_tokenizer(options.tokenizer);
  if (!options.chat_template.empty() && options.model.empty()) return std::nullopt;
  const auto found = find_tokenizer(model_path(options.model));
  return found ? std::optional(read_tokenizer(*found)) : std::nullopt;
}

// Returns the template given, the tokenizer's, or that of the model's family.
ChatTemplate load_template(const RenderOptions& options) {
  const auto tokenizer = read_tokenizer_of(options);
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

int run_render(const RenderOptions& options) {
  const ChatTemplate chat_template = load_template(options);
  const std::string& file = options.text.file;
  const std::string input = options.text.read();
  if (!file.empty()) check_not_mistaken(input, file);
  const std::time_t now = std::time(nullptr);
  if (!options.jsonl) {
    fmt::print("{}", chat_template.render(parse_chat_input(input, file.empty() ? "the input" : file), now));
    return 0;
  }
  for_each_line(input, [&](const std::string& line, std::size_t number) {
    const std::string place = place_of_line(file, number);
    const ChatInput conversation = parse_chat_input(line, place);
    try {
      fmt::print("{}\n", dump_json(nlohmann::json(chat_template.render(conversation, now))));
    } catch (const Error& error) {
      throw Error(fmt::format("{}: {}", place, error.what()));
    }
  });
  return 0;
}

}  // namespace

Command add_render(CLI::App& command) {
  auto options = std::make_shared<RenderOptions>();
  add_model(command, options->model, "checkpoint whose chat template is used (default: the demo)");
  add_tokenizer(command, options->tokenizer);
  add_template(command, options->chat_template);
  options->text.add_to(command);
  command.add_flag("--jsonl", options->jsonl,
                   "one conversation per line in, one prompt per line out, as a JSON string");
  command.footer(
      "A conversation is a JSON object: {\"messages\": [{\"role\": \"user\", \"content\": \"...\"}], \"tools\": "
      "[...], \"add_generation_prompt\": true, \"open_thinking\": true}. Only messages is required; other names are "
      "variables of the template. MiniMind's data, {\"conversations\": [...]} with the tools in a system message, is "
      "read too.");
  return [options] { return run_render(*options); };
}

}  // namespace minimind
