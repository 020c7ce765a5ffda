#include "tools/options/help.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tools/terminal/language.h"
#include "tools/terminal/terminal.h"
#include "tools/terminal/text_columns.h"
#include "weights/tensor/weight_types.h"

namespace minimind {
namespace {

constexpr std::array common_options = {
    HelpOption{"--model", "MODEL"},    HelpOption{"--prompt", "TEXT"},   HelpOption{"--file", "FILE"},
    HelpOption{"--decode", "N"},       HelpOption{"--max-tokens", "N"},  HelpOption{"--temperature", "X"},
    HelpOption{"--reference", "FILE"}, HelpOption{"--output", "FILE"},   HelpOption{"--against", "MODEL"},
    HelpOption{"--force", ""},         HelpOption{"--lang", "LANGUAGE"}, HelpOption{"--help", ""},
    HelpOption{"--version", ""},
};

constexpr std::array model_options = {
    HelpOption{"--tokenizer", "PATH"},    HelpOption{"--template", "FILE"},     HelpOption{"--config", "FILE"},
    HelpOption{"--lora", "PATH[:SCALE]"}, HelpOption{"--rope-scaling", "KIND"}, HelpOption{"--ctx-size", "N"},
    HelpOption{"--heads", "N"},           HelpOption{"--kv-heads", "N"},        HelpOption{"--experts-per-token", "N"},
};

constexpr std::array prompt_options = {
    HelpOption{"--system", "TEXT"},  HelpOption{"--tools", "FILE"},   HelpOption{"--session", "FILE"},
    HelpOption{"--load", "FILE"},    HelpOption{"--save", "FILE"},    HelpOption{"--think", ""},
    HelpOption{"--no-think", ""},    HelpOption{"--no-shift", ""},    HelpOption{"--turns", ""},
    HelpOption{"--tool-result", ""}, HelpOption{"--tokens", "IDS"},   HelpOption{"--tokens-file", "FILE"},
    HelpOption{"--jsonl", ""},       HelpOption{"--depth", "N,..."},  HelpOption{"--stride", "N"},
    HelpOption{"--raw", ""},         HelpOption{"--history", "N"},    HelpOption{"--historys", "N"},
    HelpOption{"--all-turns", ""},   HelpOption{"--add-special", ""}, HelpOption{"--plain-content", ""},
};

constexpr std::array sampling_options = {
    HelpOption{"--seed", "N"},
    HelpOption{"--greedy", ""},
    HelpOption{"--top-p", "P"},
    HelpOption{"--top-k", "K"},
    HelpOption{"--min-p", "P"},
    HelpOption{"--typical-p", "P"},
    HelpOption{"--repeat-penalty", "X"},
    HelpOption{"--presence-penalty", "X"},
    HelpOption{"--frequency-penalty", "X"},
    HelpOption{"--dry-multiplier", "X"},
    HelpOption{"--dry-base", "X"},
    HelpOption{"--dry-allowed-length", "N"},
    HelpOption{"--dry-penalty-last-n", "N"},
    HelpOption{"--dry-sequence-breaker", "TEXT"},
};

constexpr std::array constraint_options = {
    HelpOption{"--stop", "TEXT"},      HelpOption{"--ignore-eos", ""},         HelpOption{"--json-schema", "FILE"},
    HelpOption{"--grammar", "FILE"},   HelpOption{"--open-schema", ""},        HelpOption{"--closed-schema", ""},
    HelpOption{"--strict-schema", ""}, HelpOption{"--schema-ref", "URI=FILE"}, HelpOption{"--logit-bias", "ID+BIAS"},
    HelpOption{"--tolerance", "X"},
};

constexpr std::array speed_options = {
    HelpOption{"--threads", "N"},      HelpOption{"--type", "TYPE"},      HelpOption{"--embedding-type", "TYPE"},
    HelpOption{"--calibrate", "FILE"}, HelpOption{"--size", "SIZE"},      HelpOption{"--bits", "N"},
    HelpOption{"--plan", "FILE"},      HelpOption{"--compute", "TYPE"},   HelpOption{"--kv-type", "TYPE"},
    HelpOption{"--speculate", "N"},    HelpOption{"--draft", "MODEL"},    HelpOption{"--repetitions", "N"},
    HelpOption{"--parallel", "N"},     HelpOption{"--shared-prompt", ""}, HelpOption{"--kv-memory", "MB"},
};

constexpr std::array server_options = {
    HelpOption{"--host", "ADDRESS"},         HelpOption{"--port", "N"},
    HelpOption{"--socket", "PATH"},          HelpOption{"--api-key-file", "FILE"},
    HelpOption{"--no-api-key", ""},          HelpOption{"--allow-host", "NAME"},
    HelpOption{"--cors", "ORIGIN"},          HelpOption{"--queue", "N"},
    HelpOption{"--models-memory", "MB"},     HelpOption{"--weights-from", "FOLDER"},
    HelpOption{"--drain", "SECONDS"},        HelpOption{"--header-timeout", "SECONDS"},
    HelpOption{"--idle-timeout", "SECONDS"}, HelpOption{"--max-connections", "N"},
    HelpOption{"--max-header", "KB"},        HelpOption{"--max-body", "MB"},
    HelpOption{"--max-unread", "KB"},        HelpOption{"--max-text", "KB"},
    HelpOption{"--stuck-after", "SECONDS"},  HelpOption{"--no-sandbox", ""},
};

constexpr std::array output_options = {
    HelpOption{"--json", ""},          HelpOption{"--errors", "FILE"},   HelpOption{"--quiet", ""},
    HelpOption{"--show-thinking", ""}, HelpOption{"--skip-special", ""}, HelpOption{"--tensors", ""},
    HelpOption{"--ids", ""},           HelpOption{"--once", ""},
};

constexpr std::array groups = {
    HelpGroup{"Common options", common_options},  HelpGroup{"Model", model_options},
    HelpGroup{"Prompt", prompt_options},          HelpGroup{"Sampling", sampling_options},
    HelpGroup{"Constraints", constraint_options}, HelpGroup{"Speed", speed_options},
    HelpGroup{"Server", server_options},          HelpGroup{"Output", output_options},
};

constexpr std::array examples = {
    HelpExample{"minimind", "minimind chat", "talk with the bundled model, which writes poems"},
    HelpExample{"minimind", "minimind chat out/full_sft_768.pth", "talk with your own model"},
    HelpExample{"minimind", "minimind inspect out/full_sft_768.pth", "show what is in a checkpoint"},
    HelpExample{"chat", "minimind chat out/full_sft_768.pth", "talk with your own model"},
    HelpExample{"chat", "echo 你好 | minimind chat out/full_sft_768.pth --json",
                "one message from a script, the answer as JSON"},
    HelpExample{"generate", "minimind generate out/pretrain_768.pth -p '秦始皇的功绩包括'", "continue a text"},
    HelpExample{"generate", "minimind generate out/pretrain_768.pth -f prompt.txt -n 100 --seed 1",
                "continue a file; the seed makes the run repeatable"},
    HelpExample{"inspect", "minimind inspect out/full_sft_768.pth", "show what is in a checkpoint"},
    HelpExample{"inspect", "minimind inspect minimind.gguf --json", "the facts as JSON, for a program"},
    HelpExample{"logits", "minimind logits out/full_sft_768.pth --tokens 1,320,402 -o logits.npy",
                "write the logits of three tokens"},
    HelpExample{"logits", "minimind logits out/full_sft_768.pth --tokens-file ids.txt -o logits.npy",
                "take the token ids from a file"},
    HelpExample{"compare", "minimind compare out/full_sft_768.pth --tokens 1,320,402 --reference R.npy",
                "check the logits against those of PyTorch"},
    HelpExample{"compare", "minimind compare q8.gguf --tokens 1,320,402 --reference R.npy --tolerance 0.1",
                "allow for a quantised model"},
    HelpExample{"perplexity", "minimind perplexity out/full_sft_768.pth -f text.txt",
                "measure the perplexity of a text"},
    HelpExample{"perplexity", "minimind perplexity q4.gguf -f text.txt --against out/full_sft_768.pth",
                "compare a quantised model with the original"},
    HelpExample{"watch", "minimind watch out", "an answer of each checkpoint, as a trainer writes it"},
    HelpExample{"watch", "minimind watch out -f sft_valid.jsonl -p 你好", "its loss on held-out data, too"},
    HelpExample{"tokenize", "minimind tokenize out/full_sft_768.pth -p 你好", "turn a text into token ids"},
    HelpExample{"tokenize", "minimind tokenize --decode -p 1,320,402", "turn token ids into a text"},
    HelpExample{"validate", "minimind validate --json-schema person.json answer.json",
                "does the text conform to the schema"},
    HelpExample{"validate", "echo '[1, 2]' | minimind validate --json-schema list.json", "check standard input"},
    HelpExample{"render", "minimind render out/full_sft_768.pth -f conversation.json",
                "show the prompt of a conversation"},
    HelpExample{"render", "minimind render --template chat.jinja --jsonl < conversations.jsonl",
                "try another chat template on many conversations"},
    HelpExample{"convert", "minimind convert out/full_sft_768.pth minimind.gguf --type q8_0", "quantise for llama.cpp"},
    HelpExample{"convert", "minimind convert out/full_sft_768.pth minimind-hf/", "write a folder for transformers"},
    HelpExample{"convert", "minimind convert out/full_sft_768.pth small.gguf --size 40MB --calibrate sft.jsonl",
                "the best mix of types in 40 MB"},
    HelpExample{"batch", "minimind batch requests.jsonl -o results.jsonl -m out/full_sft_768.pth",
                "answer many requests"},
    HelpExample{"batch", "minimind batch prompts.jsonl -o texts.jsonl --parallel 32 --seed 1",
                "more at once; the seed makes the run repeatable"},
    HelpExample{"serve", "minimind serve -m out/full_sft_768.pth", "open the address that is printed in a browser"},
    HelpExample{"serve", "minimind serve -m out/full_sft_768.pth --host 0.0.0.0 --api-key-file keys.txt",
                "let other machines use it"},
    HelpExample{"serve", "minimind serve -m out", "serve every checkpoint in a folder"},
    HelpExample{"bench", "minimind bench out/full_sft_768.pth", "measure the speed of a model"},
    HelpExample{"bench", "minimind bench out/full_sft_768.pth --type f16,q8_0 -t 1,2",
                "compare types and numbers of threads"},
};

constexpr std::size_t label_columns = 30;
constexpr std::size_t narrow_columns = 76, narrow_indent = 6;

const HelpOption* find_option(const CLI::Option& option) {
  for (const HelpGroup& group : groups) {
    for (const HelpOption& shown : group.options) {
      if (option.check_name(std::string(shown.name))) return &shown;
    }
  }
  return nullptr;
}

// "-n, --max-tokens N"
std::string label_of(const CLI::Option& option, std::string_view value) {
  std::string label;
  for (const std::string& name : option.get_snames()) label += (label.empty() ? "-" : ", -") + name;
  if (label.empty()) label = "   ";
  for (const std::string& name : option.get_lnames()) label += (label == "   " ? " --" : ", --") + name;
  if (!value.empty()) label += ' ' + std::string(translated(value));
  return label;
}

// Returns the name of an option's value: the command's, otherwise the common one.
std::string value_of(const CLI::Option& option, std::string_view usual) {
  static const std::set<std::string> unnamed{"", "TEXT", "UINT", "INT", "FLOAT"};  // the names of CLI11
  if (option.get_items_expected_max() == 0) return "";
  const std::string own = option.get_type_name();
  return unnamed.contains(own) ? std::string(usual) : own;
}

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

// Replaces {weight types}, {float types} and {block types}, in any language, by the names of the types.
std::string with_types(std::string text) {
  std::vector<std::string> all = weight_type_names(), floats, blocks;
  for (const std::string& name : all) (is_block_type(parse_weight_type(name)) ? blocks : floats).push_back(name);
  const std::pair<std::string_view, std::vector<std::string>> places[] = {
      {"{weight types}", all}, {"{float types}", floats}, {"{block types}", blocks}};
  for (const auto& [place, names] : places) {
    const std::size_t at = text.find(place);
    if (at != std::string::npos) text.replace(at, place.size(), listed(names));
  }
  return text;
}

std::string description_of(const CLI::Option& option) {
  std::string text = with_types(std::string(translated(option.get_description())));
  const std::string value = option.get_default_str();
  if (!value.empty()) text = localized("{} (default: {})", text, value);
  if (option.get_required()) text = localized("{} (required)", text);
  return text;
}

std::string heading(std::string_view title) {
  return '\n' + localized("{}:", translated(title)) + '\n';
}

std::string usage_of(const CLI::App& command) {
  if (!command.get_parent()) return localized("Usage: minimind COMMAND [MODEL] [options]");
  std::string positionals;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    const std::string name(translated(option->get_name(true)));
    positionals += option->get_required() ? ' ' + name : " [" + name + ']';
  }
  return localized("Usage: minimind {}{} [options]", command.get_name(), positionals);
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
    text += name + wrapped(translated(command->get_description()), columns, 14) + '\n';
  }
  return text.empty() ? "" : heading("Commands") + text;
}

std::string groups_of(const CLI::App& command, std::size_t columns) {
  std::string text;
  for (const HelpGroup& group : groups) {
    std::string entries;
    for (const HelpOption& shown : group.options) {
      const CLI::Option* option = command.get_option_no_throw(std::string(shown.name));
      if (!option) continue;
      entries += entry(label_of(*option, value_of(*option, shown.value)), description_of(*option), columns);
    }
    if (!entries.empty()) text += heading(group.title) + entries;
  }
  std::string others;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional() || find_option(*option)) continue;
    others += entry(label_of(*option, option->get_type_name()), description_of(*option), columns);
  }
  return others.empty() ? text : text + heading("Other options") + others;
}

std::string examples_of(const CLI::App& command, std::size_t columns) {
  std::string text;
  for (const HelpExample& example : examples) {
    if (example.command != command.get_name()) continue;
    text += fmt::format("  {}\n      {}\n", example.call, wrapped(translated(example.does), columns, narrow_indent));
  }
  return text.empty() ? "" : heading("Examples") + text;
}

std::string help_of(const CLI::App& command) {
  const std::size_t columns = screen_size(stdout).columns;
  std::string text = wrapped(translated(command.get_description()), columns, 0) + "\n\n" +
                     wrapped(usage_of(command), columns, 4) + '\n';
  text += positionals_of(command, columns) + commands_of(command, columns) + groups_of(command, columns) +
          examples_of(command, columns);
  if (!command.get_footer().empty()) text += '\n' + wrapped(translated(command.get_footer()), columns, 0) + '\n';
  return text;
}

}  // namespace

std::span<const HelpGroup> help_groups() {
  return groups;
}

std::span<const HelpExample> help_examples() {
  return examples;
}

std::shared_ptr<CLI::FormatterBase> help_formatter() {
  return std::make_shared<CLI::FormatterLambda>(
      [](const CLI::App* command, const std::string&, CLI::AppFormatMode) { return help_of(*command); });
}

}  // namespace minimind
