#include "tools/options/command_line.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <sstream>

#include "tools/options/arguments.h"
#include "tools/options/help.h"
#include "tools/options/option_checks.h"
#include "tools/terminal/interrupt.h"
#include "tools/terminal/language.h"
#include "tools/terminal/standard_output.h"
#include "weights/base/suggestion.h"

namespace minimind {
namespace {

struct NamedCommand {
  const char *name, *english, *chinese;  // what the command does, in both languages
  Command (*add_options)(CommandOptions& command);
};

constexpr NamedCommand all_commands[] = {
    {"generate", "continue a text", "续写文本", add_generate},
    {"chat", "talk with a model through its chat template", "通过对话模板与模型对话", add_chat},
    {"serve", "serve the OpenAI API, and a page to talk to the model", "提供 OpenAI API 和对话网页", add_serve},
    {"batch", "generate many texts at once, from a file of requests", "按请求文件同时生成多段文本", add_batch},
    {"inspect", "show what is in a checkpoint, and where each value comes from", "查看检查点的内容及各项数值的来源",
     add_inspect},
    {"logits", "write the logits of given tokens to a .npy file", "将给定词元的 logits 写入 .npy 文件", add_logits},
    {"compare", "compare logits or a trace of given tokens with a reference",
     "将给定词元的 logits 或追踪值与参考值比较", add_compare},
    {"trace", "write what is computed on a token's way: the values of named points",
     "写出词元途中的计算值：各观察点的数值", add_trace},
    {"explain", "generate a text and show why each token came", "生成文本，并显示每个词元的由来", add_explain},
    {"perplexity", "perplexity of a text, used verbatim, and divergence from another model",
     "计算文本（原样使用）的困惑度，以及与另一模型的差异", add_perplexity},
    {"tokenize", "text to token ids, and back with --decode", "将文本转为词元 id；--decode 反向转换", add_tokenize},
    {"render", "turn a conversation into the prompt, with the chat template", "用对话模板将对话渲染为提示词",
     add_render},
    {"validate", "whether a text conforms to a JSON Schema or grammar, and where not",
     "检查文本是否符合 JSON Schema 或语法，并指出不符之处", add_validate},
    {"convert", "write a checkpoint as GGUF, a Hugging Face folder or a .pth",
     "将检查点转换为 GGUF、Hugging Face 文件夹或 .pth", add_convert},
    {"watch", "show how the checkpoints of a folder grow while a trainer writes them",
     "训练时查看文件夹中各检查点的进步", add_watch},
    {"bench", "measure the speed of prompts and decoding", "测量预填充和解码的速度", add_bench},
};

// By Setting.
constexpr std::string_view options_of_settings[] = {"",
                                                    "--model",
                                                    "--model, --lora, --type, --rope-scaling and --compute",
                                                    "--lora",
                                                    "--config",
                                                    "--heads and --kv-heads, or --config",
                                                    "--experts-per-token",
                                                    "--rope-scaling",
                                                    "--type bf16 or --compute f32",
                                                    "--compute",
                                                    "--ctx-size",
                                                    "--kv-type",
                                                    "--tokenizer"};
static_assert(std::size(options_of_settings) == static_cast<std::size_t>(Setting::tokenizer) + 1);

// Returns the --help call to name in a usage error.
std::string call_for_help(const CLI::App& app) {
  const auto given = app.get_subcommands();
  return given.empty() ? "minimind --help" : fmt::format("minimind {} --help", given.front()->get_name());
}

// Adds --lang and --help, which every command has.
void add_general(CLI::App& app) {
  static const std::vector<std::string> names{"zh", "en"};
  const auto set = [](const std::string& name) {
    const auto language = parse_language(name);
    if (!language) throw UsageError(fmt::format("--lang: {}", unknown_choice(name, names)));
    set_language(*language);
  };
  // At once: CLI11 2.6 prints the help before it calls the functions of options.
  CLI::Option* const option = app.add_option_function<std::string>(
                                     "--lang", set,
                                     bilingual("language of help and notes: zh or en (default: that of the locale)",
                                               "帮助和提示的语言：zh 或 en（默认：取自系统区域设置）"))
                                  ->group(common_group)
                                  ->type_name("LANGUAGE")
                                  ->trigger_on_parse();
  Option(*option).offer(names);
  app.set_help_flag("-h,--help", bilingual("print this help", "显示此帮助"))->group(common_group);
}

// Adds --completion and --man, which set `printed` to what they print.
void add_printed_pages(CLI::App& app, std::string& printed) {
  std::vector<std::string> pages{app.get_name()};
  for (const NamedCommand& named : all_commands) pages.emplace_back(named.name);
  const auto add = [&](const char* name, const char* value, std::string help, const OptionWords& words,
                       std::function<std::string(const std::string&)> text) {
    const auto set = [&printed, text = std::move(text)](const std::string& given) { printed = text(given); };
    CLI::Option* const option = app.add_option_function<std::string>(name, set, std::move(help));
    option->group(common_group)->type_name(value);
    Option(*option).transform(words);
  };
  add("--completion", "SHELL",
      bilingual("print completions for bash, zsh or fish", "打印 bash、zsh 或 fish 的补全脚本"), one_of(shell_names()),
      [&app](const std::string& shell) { return completion_of(app, shell); });
  add("--man", "PAGE",
      bilingual("print the man page of a command, or of minimind", "打印某条命令或 minimind 的 man 手册页"),
      one_of(pages), [&app](const std::string& page) {
        return man_page_of(page == app.get_name() ? app : *app.get_subcommand(page));
      });
}

}  // namespace

CommandLine::CommandLine(std::function<std::string()> version, const std::vector<std::string>& used)
    : app_(std::make_unique<CLI::App>(bilingual("Run MiniMind language models on a CPU, straight from the checkpoint.",
                                                "直接加载检查点，在 CPU 上运行 MiniMind 语言模型。"),
                                      "minimind")) {
  app_->allow_windows_style_options(false);  // a path may start with a slash
  app_->formatter(help_formatter());
  app_->set_version_flag("--version", std::move(version), bilingual("print the version", "显示版本"))
      ->group(common_group);
  app_->footer(
      bilingual("minimind help COMMAND shows the options of a command.", "minimind help 命令：查看该命令的选项。"));
  add_general(*app_);
  add_printed_pages(*app_, printed_);
  const auto is_used = [&](const NamedCommand& named) {
    return std::find(used.begin(), used.end(), named.name) != used.end();
  };
  const bool all = std::none_of(std::begin(all_commands), std::end(all_commands), is_used);
  for (const NamedCommand& named : all_commands) {
    CLI::App* command = app_->add_subcommand(named.name, bilingual(named.english, named.chinese));
    if (!all && !is_used(named)) continue;
    CommandOptions options(*command);
    Command run = named.add_options(options);
    add_general(*command);
    commands_.emplace_back(command, std::move(run));
  }
}

CommandLine::~CommandLine() = default;

int CommandLine::run(std::vector<std::string> arguments) {
  arguments = expand_help(std::move(arguments));
  try {
    check_arguments(*app_, arguments);
  } catch (const UsageError&) {
    // The options of other commands are part of the advice.
    check_arguments(CommandLine(nullptr).app(), arguments);
  }
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes them
  try {
    app_->parse(arguments);
  } catch (const CLI::Success& success) {
    std::ostringstream help;
    const int status = app_->exit(success, help);
    write_output(help.str());
    return status;
  } catch (const CLI::ExcludesError& error) {
    throw UsageError("options contradict each other: " + std::string(error.what()) + "; give one of them");
  } catch (const CLI::ParseError& error) {
    throw UsageError(fmt::format("{}; see {}", error.what(), call_for_help(*app_)));
  }
  if (!printed_.empty()) {
    write_output(printed_);
    return 0;
  }
  for (const auto& [command, run] : commands_) {
    if (!command->parsed()) continue;
    const InterruptMessage message(translated("interrupted before the end"));
    return run();
  }
  write_output(app_->help());
  return 0;
}

std::string message_of(const Error& error) {
  const std::string_view options = options_of_settings[static_cast<std::size_t>(error.setting())];
  return options.empty() ? error.what() : fmt::format("{} ({})", error.what(), options);
}

}  // namespace minimind
