#include "tools/options/help.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <utility>

#include "tools/terminal/language.h"
#include "tools/terminal/terminal.h"
#include "tools/terminal/text_columns.h"
#include "weights/tensor/weight_types.h"

namespace minimind {
namespace {

constexpr std::array examples = {
    HelpExample{"minimind", "minimind chat", "talk with the bundled model, which writes poems", "与自带的小诗人对话"},
    HelpExample{"minimind", "minimind chat out/full_sft_768.pth", "talk with your own model", "与自己训练的模型对话"},
    HelpExample{"minimind", "minimind inspect out/full_sft_768.pth", "show what is in a checkpoint",
                "查看检查点的内容"},
    HelpExample{"chat", "minimind chat out/full_sft_768.pth", "talk with your own model", "与自己训练的模型对话"},
    HelpExample{"chat", "echo 你好 | minimind chat out/full_sft_768.pth --json",
                "one message from a script, the answer as JSON", "在脚本里发送一条消息，以 JSON 输出回答"},
    HelpExample{"generate", "minimind generate out/pretrain_768.pth -p '秦始皇的功绩包括'", "continue a text",
                "续写文本"},
    HelpExample{"generate", "minimind generate out/pretrain_768.pth -f prompt.txt -n 100 --seed 1",
                "continue a file; the seed makes the run repeatable", "续写文件；固定随机种子以便复现"},
    HelpExample{"inspect", "minimind inspect out/full_sft_768.pth", "show what is in a checkpoint", "查看检查点的内容"},
    HelpExample{"inspect", "minimind inspect minimind.gguf --json", "the facts as JSON, for a program",
                "以 JSON 输出，供程序读取"},
    HelpExample{"logits", "minimind logits out/full_sft_768.pth --tokens 1,320,402 -o logits.npy",
                "write the logits of three tokens", "计算三个词元的 logits 并写入文件"},
    HelpExample{"logits", "minimind logits out/full_sft_768.pth --tokens-file ids.txt -o logits.npy",
                "take the token ids from a file", "从文件读取词元 id"},
    HelpExample{"compare", "minimind compare out/full_sft_768.pth --tokens 1,320,402 --reference R.npy",
                "check the logits against those of PyTorch", "与 PyTorch 的 logits 比对"},
    HelpExample{"compare", "minimind compare q8.gguf --tokens 1,320,402 --reference R.npy --tolerance 0.1",
                "allow for a quantised model", "为量化模型放宽容差"},
    HelpExample{"compare", "minimind compare out/full_sft_768.pth --trace reference.safetensors",
                "find the first equation that differs from PyTorch", "找出第一个与 PyTorch 不同的公式"},
    HelpExample{"trace", "minimind trace out/full_sft_768.pth -p 你好 -o trace.safetensors",
                "write every value on the way of this text", "写出这段文本的全部中间数值"},
    HelpExample{"trace", "minimind trace -p 春 --points 'layers.*.mlp.*' --layers 0 --json",
                "a summary of the feed-forward of one layer", "一层前馈网络数值的概要"},
    HelpExample{"trace", "minimind trace out/full_sft_768.pth --list", "list the points with their formulas",
                "列出观察点及其公式"},
    HelpExample{"explain", "minimind explain out/full_sft_768.pth -p '秦始皇的功绩包括' -n 3", "why three tokens came",
                "三个词元的由来"},
    HelpExample{"explain", "minimind explain -p 春 -n 1 --greedy --json", "the same as JSON, for a program",
                "以 JSON 输出，供程序读取"},
    HelpExample{"perplexity", "minimind perplexity out/full_sft_768.pth -f text.txt",
                "measure the perplexity of a text", "计算文本的困惑度"},
    HelpExample{"perplexity", "minimind perplexity q4.gguf -f text.txt --against out/full_sft_768.pth",
                "compare a quantised model with the original", "比较量化模型与原模型"},
    HelpExample{"watch", "minimind watch out", "an answer of each checkpoint, as a trainer writes it",
                "训练器每写出一个检查点，就显示它的回答"},
    HelpExample{"watch", "minimind watch out -f sft_valid.jsonl -p 你好", "its loss on held-out data, too",
                "同时计算它在留出数据上的损失"},
    HelpExample{"tokenize", "minimind tokenize out/full_sft_768.pth -p 你好", "turn a text into token ids",
                "将文本转为词元 id"},
    HelpExample{"tokenize", "minimind tokenize --decode -p 1,320,402", "turn token ids into a text",
                "将词元 id 还原为文本"},
    HelpExample{"validate", "minimind validate --json-schema person.json answer.json",
                "does the text conform to the schema", "文本是否符合模式"},
    HelpExample{"validate", "echo '[1, 2]' | minimind validate --json-schema list.json", "check standard input",
                "检查标准输入"},
    HelpExample{"render", "minimind render out/full_sft_768.pth -f conversation.json",
                "show the prompt of a conversation", "查看对话渲染后的提示词"},
    HelpExample{"render", "minimind render --template chat.jinja --jsonl < conversations.jsonl",
                "try another chat template on many conversations", "用另一个对话模板渲染多个对话"},
    HelpExample{"convert", "minimind convert out/full_sft_768.pth minimind.gguf --type q8_0", "quantise for llama.cpp",
                "量化，供 llama.cpp 使用"},
    HelpExample{"convert", "minimind convert out/full_sft_768.pth minimind-hf/", "write a folder for transformers",
                "写出供 transformers 使用的文件夹"},
    HelpExample{"convert", "minimind convert out/full_sft_768.pth small.gguf --size 40MB --calibrate sft.jsonl",
                "the best mix of types in 40 MB", "40 MB 以内的最佳类型组合"},
    HelpExample{"batch", "minimind batch requests.jsonl -o results.jsonl -m out/full_sft_768.pth",
                "answer many requests", "批量回答请求"},
    HelpExample{"batch", "minimind batch prompts.jsonl -o texts.jsonl --parallel 32 --seed 1",
                "more at once; the seed makes the run repeatable", "同时处理更多请求；固定随机种子以便复现"},
    HelpExample{"serve", "minimind serve -m out/full_sft_768.pth", "open the address that is printed in a browser",
                "用浏览器打开所显示的地址"},
    HelpExample{"serve", "minimind serve -m out/full_sft_768.pth --host 0.0.0.0 --api-key-file keys.txt",
                "let other machines use it", "允许其他机器使用"},
    HelpExample{"serve", "minimind serve -m out", "serve every checkpoint in a folder",
                "为文件夹中的每个检查点提供服务"},
    HelpExample{"bench", "minimind bench out/full_sft_768.pth", "measure the speed of a model", "测量模型的速度"},
    HelpExample{"bench", "minimind bench out/full_sft_768.pth --type f16,q8_0 -t 1,2",
                "compare types and numbers of threads", "比较不同类型和线程数"},
};

constexpr std::size_t label_columns = 30;
constexpr std::size_t narrow_columns = 76, narrow_indent = 6;

// On a narrow screen the description is below its label: next to it, a word may have too little room.
std::string entry(const std::string& label, const std::string& text, std::size_t columns) {
  const bool narrow = columns < narrow_columns;
  const std::size_t indent = narrow ? narrow_indent : label_columns;
  const std::string first = "  " + label, described = wrapped(text, columns, indent);
  if (!narrow && columns_in(first) + 2 <= indent) return padded(first, indent) + described + '\n';
  return first + '\n' + std::string(indent, ' ') + described + '\n';
}

// Returns "a, b or c".
std::string listed(const std::vector<std::string>& names) {
  std::string list = names.front();
  for (std::size_t i = 1; i < names.size(); ++i) {
    list = i + 1 < names.size() ? localized("{}, {}", list, names[i]) : localized("{} or {}", list, names[i]);
  }
  return list;
}

// Replaces {weight types}, those in memory, and {float types} and {block types}, those in files, in any language, by
// the names of the types.
std::string with_types(std::string text) {
  std::vector<std::string> floats, blocks;
  for (const std::string& name : weight_type_names())
    (is_block_type(parse_weight_type(name)) ? blocks : floats).push_back(name);
  const std::pair<std::string_view, std::vector<std::string>> places[] = {
      {"{weight types}", weight_type_names(WeightsAre::in_memory)},
      {"{float types}", floats},
      {"{block types}", blocks}};
  for (const auto& [place, names] : places) {
    const std::size_t at = text.find(place);
    if (at != std::string::npos) text.replace(at, place.size(), listed(names));
  }
  return text;
}

std::string heading(std::string_view title) {
  return '\n' + localized("{}:", translated(title)) + '\n';
}

std::string positionals_of(const CLI::App& command, std::size_t columns) {
  std::string text;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    text += entry(std::string(translated(option->get_name(true))), description_of(*option), columns);
  }
  return text.empty() ? "" : '\n' + text;
}

std::string commands_of(const CLI::App& app, std::size_t columns) {
  std::string text;
  for (const CLI::App* command : app.get_subcommands({})) {
    const std::string name = padded("  " + command->get_name(), 14);
    text += name + wrapped(in_language(command->get_description()), columns, 14) + '\n';
  }
  return text.empty() ? "" : heading("Commands") + text;
}

std::string groups_of(const CLI::App& command, std::size_t columns) {
  std::string text;
  for (const char* const group : help_groups) {
    std::string entries;
    for (const CLI::Option* option : command.get_options()) {
      if (option->get_positional() || option->get_group() != group) continue;
      entries += entry(label_of(*option), description_of(*option), columns);
    }
    if (!entries.empty()) text += heading(group) + entries;
  }
  return text;
}

std::string examples_of(const CLI::App& command, std::size_t columns) {
  std::string text;
  for (const HelpExample& example : examples) {
    if (example.command != command.get_name()) continue;
    text += fmt::format(
        "  {}\n      {}\n", example.call,
        wrapped(language() == Language::english ? example.english : example.chinese, columns, narrow_indent));
  }
  return text.empty() ? "" : heading("Examples") + text;
}

std::string help_of(const CLI::App& command) {
  const std::size_t columns = screen_size(stdout).columns;
  std::string text = wrapped(in_language(command.get_description()), columns, 0) + "\n\n" +
                     wrapped(localized("Usage: {}", call_of(command)), columns, 4) + '\n';
  text += positionals_of(command, columns) + commands_of(command, columns) + groups_of(command, columns) +
          examples_of(command, columns);
  if (!command.get_footer().empty()) text += '\n' + wrapped(in_language(command.get_footer()), columns, 0) + '\n';
  return text;
}

}  // namespace

std::string call_of(const CLI::App& command) {
  if (!command.get_parent()) return localized("minimind COMMAND [MODEL] [options]");
  std::string positionals;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    const std::string name(translated(option->get_name(true)));
    positionals += option->get_required() ? ' ' + name : " [" + name + ']';
  }
  return localized("minimind {}{} [options]", command.get_name(), positionals);
}

bool takes_value(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

// CLI11 appends what checks say of themselves to the name.
std::string value_name(const CLI::Option& option) {
  const std::string name = option.get_type_name();
  return name.substr(0, name.find(":{"));
}

bool takes_path(const CLI::Option& option) {
  const std::string name = option.get_positional() ? option.get_name() : value_name(option);
  if (name == "IN" || name == "OUT") return true;
  const auto mentions = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  return mentions("FILE") || mentions("FOLDER") || mentions("MODEL") || mentions("PATH");
}

std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string name = option.get_type_name();
  const std::size_t begin = name.find(":{");
  if (begin == std::string::npos) return {};
  return CLI::detail::split(name.substr(begin + 2, name.find('}', begin) - begin - 2), ',');
}

std::string label_of(const CLI::Option& option) {
  std::string label;
  for (const std::string& name : option.get_snames()) label += (label.empty() ? "-" : ", -") + name;
  if (label.empty()) label = "   ";
  for (const std::string& name : option.get_lnames()) label += (label == "   " ? " --" : ", --") + name;
  if (takes_value(option)) label += ' ' + std::string(translated(value_name(option)));
  return label;
}

std::string description_of(const CLI::Option& option) {
  std::string text = with_types(std::string(in_language(option.get_description())));
  const std::string value = option.get_default_str();
  if (!value.empty()) text = localized("{} (default: {})", text, value);
  if (option.get_required()) text = localized("{} (required)", text);
  return text;
}

std::span<const HelpExample> help_examples() {
  return examples;
}

std::shared_ptr<CLI::FormatterBase> help_formatter() {
  return std::make_shared<CLI::FormatterLambda>(
      [](const CLI::App* command, const std::string&, CLI::AppFormatMode) { return help_of(*command); });
}

}  // namespace minimind
