#include "tools/terminal/language.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/cli.h"
#include "tools/options/command_line.h"
#include "tools/options/help.h"
#include "tools/terminal/text_columns.h"

namespace minimind {
namespace {

namespace fs = std::filesystem;

// A string of the sources, with adjacent ones joined, and the name before the innermost bracket around it.
struct Literal {
  std::string text, around;
};

// Reads only as much C++ as finding strings requires.
class LiteralReader {
 public:
  explicit LiteralReader(std::string source) : source_(std::move(source)) {}

  std::vector<Literal> read() {
    while (at_ < source_.size()) step();
    return literals_;
  }

 private:
  void step() {
    const char c = source_[at_];
    if (source_.compare(at_, 2, "//") == 0) {
      at_ = std::min(source_.find('\n', at_), source_.size());
    } else if (source_.compare(at_, 2, "/*") == 0) {
      at_ = std::min(source_.find("*/", at_), source_.size() - 2) + 2;
    } else if (c == '\'') {
      for (++at_; source_[at_] != '\''; ++at_) at_ += source_[at_] == '\\';
      ++at_;
    } else if (source_.compare(at_, 3, "R\"(") == 0) {
      at_ = source_.find(")\"", at_) + 2;
      adjacent_ = false;
    } else if (c == '"') {
      read_string();
    } else if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') {
      read_word();
    } else {
      read_mark(c);
    }
  }

  void read_word() {
    const std::size_t begin = at_;
    while (at_ < source_.size() && (std::isalnum(static_cast<unsigned char>(source_[at_])) || source_[at_] == '_'))
      ++at_;
    // A quote in a number separates digits.
    while (at_ < source_.size() && source_[at_] == '\'' && std::isdigit(static_cast<unsigned char>(source_[begin])))
      ++at_;
    word_ = source_.substr(begin, at_ - begin);
    adjacent_ = false;
  }

  void read_mark(char c) {
    ++at_;
    if (c == ' ' || c == '\n') return;
    adjacent_ = false;
    if (c == '(' || c == '{' || c == '[') {
      around_.push_back(word_.empty() && !around_.empty() ? around_.back() : word_);
    } else if ((c == ')' || c == '}' || c == ']') && !around_.empty()) {
      around_.pop_back();
    }
    word_.clear();
  }

  void read_string() {
    std::string text;
    for (++at_; source_[at_] != '"'; ++at_) {
      if (source_[at_] != '\\') {
        text += source_[at_];
        continue;
      }
      const char escaped = source_[++at_];
      text += escaped == 'n' ? '\n' : escaped;
    }
    ++at_;
    if (adjacent_) {
      literals_.back().text += text;
    } else {
      literals_.push_back({text, around_.empty() ? "" : around_.back()});
    }
    adjacent_ = true;
    word_.clear();
  }

  std::string source_;
  std::size_t at_ = 0;
  std::string word_;
  std::vector<std::string> around_;
  bool adjacent_ = false;
  std::vector<Literal> literals_;
};

std::vector<Literal> literals_of(const std::string& folder) {
  std::vector<Literal> literals;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(MINIMIND_SOURCE_DIR) / folder)) {
    const fs::path& path = entry.path();
    if ((path.extension() != ".cpp" && path.extension() != ".h") || path.filename() == "chinese.cpp") continue;
    const auto found = LiteralReader(read_whole_file(path.string())).read();
    literals.insert(literals.end(), found.begin(), found.end());
  }
  return literals;
}

// Whether the text has words to translate: two letters in a row outside placeholders.
bool has_words(const std::string& text) {
  std::size_t letters = 0;
  bool in_placeholder = false;
  for (const char c : text) {
    if (c == '{' || c == '}') in_placeholder = c == '{';
    letters = std::isalpha(static_cast<unsigned char>(c)) && !in_placeholder ? letters + 1 : 0;
    if (letters == 2) return true;
  }
  return false;
}

bool is_translated(std::string_view english) {
  const auto all = translations();
  return std::any_of(all.begin(), all.end(), [&](const Translation& one) { return one.english == english; });
}

std::vector<const CLI::App*> apps_of(const CLI::App& app) {
  std::vector<const CLI::App*> apps = app.get_subcommands({});
  apps.insert(apps.begin(), &app);
  return apps;
}

// Returns the text between braces, numbered if it has no number: "0", "1:.1f".
std::multiset<std::string> placeholders_of(std::string_view text) {
  std::multiset<std::string> placeholders;
  std::size_t next = 0;
  for (std::size_t at = text.find('{'); at != std::string_view::npos; at = text.find('{', at + 1)) {
    std::string inside(text.substr(at + 1, text.find('}', at) - at - 1));
    const bool numbered = !inside.empty() && std::isdigit(static_cast<unsigned char>(inside.front()));
    placeholders.insert(numbered ? inside : std::to_string(next++) + inside);
  }
  return placeholders;
}

// Whether a text of CLI11 has both languages.
bool is_bilingual(const std::string& text) {
  const std::size_t end = text.find('\n');
  return end != 0 && end != std::string::npos && end + 1 < text.size() && text.find('\n', end + 1) == std::string::npos;
}

TEST(Chinese, HasEveryTextOfTheHelp) {
  const CommandLine command_line(nullptr);
  for (const CLI::App* app : apps_of(command_line.app())) {
    EXPECT_TRUE(is_bilingual(app->get_description())) << app->get_description();
    EXPECT_TRUE(app->get_footer().empty() || is_bilingual(app->get_footer())) << app->get_footer();
    for (const CLI::Option* option : app->get_options()) {
      EXPECT_TRUE(is_bilingual(option->get_description())) << option->get_name() << ": " << option->get_description();
      const std::string value = option->get_items_expected_max() > 0 ? value_name(*option) : "";
      EXPECT_TRUE(!has_words(value) || value == "IDS" || value == "ID+BIAS" || is_translated(value)) << value;
    }
  }
  for (const char* const group : help_groups) EXPECT_TRUE(is_translated(group)) << group;
  for (const HelpExample& example : help_examples()) EXPECT_FALSE(example.chinese.empty()) << example.english;
}

TEST(Chinese, HasEveryTextOfNotes) {
  const std::set<std::string> speakers{"note",       "say",     "localized",      "counted",
                                       "translated", "heading", "ChatCommandInfo"};
  std::size_t found = 0;
  for (const Literal& literal : literals_of("tools")) {
    if (!speakers.contains(literal.around) || !has_words(literal.text)) continue;
    const bool is_syntax =
        literal.around == "ChatCommandInfo" && (literal.text.starts_with('/') || literal.text == "[on|off]");
    EXPECT_TRUE(is_syntax || is_translated(literal.text))
        << "tools/terminal/chinese.cpp has no entry for: " << literal.text << " (in " << literal.around << ")";
    ++found;
  }
  EXPECT_GT(found, 80u);
}

TEST(Chinese, HasEveryFactFoundBelowTheTools) {
  std::size_t found = 0;
  for (const char* folder : {"weights", "runtime", "tools"}) {
    for (const Literal& literal : literals_of(folder)) {
      const bool is_fact = literal.around == "Fact" || (literal.around == "tell" && literal.text.ends_with(": {}"));
      if (!is_fact || !has_words(literal.text)) continue;
      EXPECT_TRUE(is_translated(literal.text)) << "tools/terminal/chinese.cpp has no entry for: " << literal.text;
      ++found;
    }
  }
  EXPECT_GT(found, 60u);
}

TEST(Chinese, HasNoUnusedText) {
  std::set<std::string> said;
  for (const char* folder : {"tools", "runtime", "weights"}) {
    for (const Literal& literal : literals_of(folder)) said.insert(literal.text);
  }
  for (const Translation& translation : translations()) {
    EXPECT_TRUE(said.contains(std::string(translation.english)))
        << "tools/terminal/chinese.cpp has an unused entry: " << translation.english;
  }
}

TEST(Chinese, HasEachTextOnceWithTheSamePlaceholders) {
  std::set<std::string_view> seen;
  for (const Translation& translation : translations()) {
    EXPECT_TRUE(seen.insert(translation.english).second) << translation.english;
    EXPECT_NE(translation.chinese, "") << translation.english;
    if (translation.english.find("{\"") != std::string_view::npos) continue;  // JSON, which is not formatted
    EXPECT_EQ(placeholders_of(translation.chinese), placeholders_of(translation.english)) << translation.english;
  }
}

TEST(Language, FactsAreTranslatedPartByPart) {
  const Fact fact("{} as {}: {}", "a.weight", "f16", Fact("its {} columns are not a multiple of {}", 53u, 32u));
  EXPECT_EQ(localized(fact), "a.weight as f16: its 53 columns are not a multiple of 32");
  set_language(Language::chinese);
  EXPECT_EQ(localized(fact), "a.weight 存为 f16：其 53 列不是 32 的倍数");
  EXPECT_EQ(localized(Fact("what {} uses", "self_attn.q_norm is present")), "self_attn.q_norm is present 的惯用值");
  EXPECT_EQ(fact.english(), "a.weight as f16: its 53 columns are not a multiple of 32");
  set_language(Language::english);
}

TEST(Language, OfTheEnvironmentFollowsThePosixOrder) {
  const auto language = [](const std::map<std::string, std::string>& variables) {
    for (const char* name : {"LC_ALL", "LC_MESSAGES", "LANG", "LANGUAGE"}) {
      const auto value = variables.find(name);
      value == variables.end() ? unsetenv(name) : setenv(name, value->second.c_str(), 1);
    }
    return language_of_environment();
  };
  for (const char* chinese : {"zh_CN.UTF-8", "zh_CN.utf8", "zh_TW.UTF-8", "zh_HK.utf-8", "zh_SG.UTF-8@x", "zh"}) {
    EXPECT_EQ(language({{"LANG", chinese}}), Language::chinese) << chinese;
  }
  for (const char* other :
       {"", "C", "POSIX", "C.UTF-8", "en_US.UTF-8", "zh_CN.GBK", "zh_CN.GB18030", "zhx", "ja_JP.UTF-8"}) {
    EXPECT_EQ(language({{"LANG", other}}), Language::english) << other;
  }
  EXPECT_EQ(language({{"LC_ALL", "C"}, {"LANG", "zh_CN.UTF-8"}}), Language::english);
  EXPECT_EQ(language({{"LC_ALL", ""}, {"LANG", "zh_CN.UTF-8"}}), Language::chinese);
  EXPECT_EQ(language({{"LC_MESSAGES", "en_US.UTF-8"}, {"LANG", "zh_CN.UTF-8"}}), Language::english);
  EXPECT_EQ(language({{"LC_MESSAGES", "zh_CN.UTF-8"}, {"LANG", "en_US.UTF-8"}}), Language::chinese);
  EXPECT_EQ(language({{"LANGUAGE", "zh_CN:en"}}), Language::chinese);
  EXPECT_EQ(language({}), Language::english);
}

TEST(TextColumns, ChineseCharactersTakeTwo) {
  EXPECT_EQ(columns_in("词元 id"), 7u);
  EXPECT_EQ(padded("词元", 6), "词元  ");
  EXPECT_EQ(wrapped("one two three", 8, 2), "one\n  two\n  three");
  EXPECT_EQ(wrapped("一二三四五六", 8, 0), "一二三四\n五六");
  EXPECT_EQ(wrapped("一二三四，五六", 8, 0), "一二三\n四，五六");
  EXPECT_EQ(wrapped("averyverylongword", 5, 0), "averyverylongword");
}

class LanguageCli : public Cli {
 protected:
  Outcome chinese(const std::string& arguments) const {
    return run(arguments, "LC_ALL= LC_MESSAGES= LANG=zh_CN.UTF-8");
  }
  Outcome english(const std::string& arguments) const { return run(arguments, "LC_ALL=C LANG=zh_CN.UTF-8"); }
};

TEST_F(LanguageCli, ChineseHelpOfEveryCommandFits80Columns) {
  const CommandLine command_line(nullptr);
  for (const CLI::App* app : apps_of(command_line.app())) {
    const std::string call = app->get_parent() ? app->get_name() + " --help" : "--help";
    const Outcome help = chinese(call);
    EXPECT_EQ(help.status, 0) << call;
    EXPECT_NE(help.out, english(call).out) << call;
    EXPECT_NE(help.out.find("用法：minimind"), std::string::npos) << help.out;
    for (const std::string& text : {help.out, english(call).out}) {
      std::istringstream lines(text);
      for (std::string line; std::getline(lines, line);) {
        EXPECT_TRUE(columns_in(line) <= 80 || line.starts_with("  minimind ")) << line;
      }
    }
  }
}

TEST_F(LanguageCli, HelpGroupsOptionsAndShowsTwoExamples) {
  const CommandLine command_line(nullptr);
  for (const CLI::App* app : apps_of(command_line.app())) {
    const std::string help = english(app->get_parent() ? app->get_name() + " --help" : "").out;
    for (const CLI::Option* option : app->get_options()) {
      const bool listed = option->get_positional() || std::ranges::count(help_groups, option->get_group()) > 0;
      EXPECT_TRUE(listed) << option->get_name() << " of " << app->get_name()
                          << " is in no group of tools/options/help.h";
    }
    const std::size_t at = help.find("\nExamples:\n");
    ASSERT_NE(at, std::string::npos) << app->get_name();
    std::size_t examples = 0;
    for (std::size_t i = help.find("minimind ", at); i != std::string::npos; i = help.find("minimind ", i + 1))
      ++examples;
    EXPECT_GE(examples, 2u) << app->get_name();
  }
  const std::string help = english("generate --help").out;
  std::size_t before = 0;
  for (const char* group : {"Common options:", "Model:", "Prompt:", "Sampling:", "Constraints:", "Speed:", "Output:"}) {
    const std::size_t at = help.find(std::string("\n") + group + "\n");
    EXPECT_NE(at, std::string::npos) << group;
    EXPECT_GT(at, before) << group;
    before = at;
  }
  EXPECT_LT(help.find("--temperature"), help.find("--dry-base"));
}

TEST_F(LanguageCli, HelpListsTheTypesOfWeights) {
  const auto joined = [](std::string text) {
    text.erase(std::remove_if(text.begin(), text.end(), [](char c) { return c == ' ' || c == '\n'; }), text.end());
    return text;
  };
  for (const char* command : {"generate", "chat", "bench", "logits"}) {
    const std::string call = std::string(command) + " --help";
    EXPECT_NE(joined(english(call).out).find("q8_0,q4_0,q4_1,q5_0,q5_1,q4_k,q5_k,q6_k,iq4_nlorq8_r(default"),
              std::string::npos)
        << call;
    EXPECT_NE(joined(chinese(call).out).find("q8_0、q4_0、q4_1、q5_0、q5_1、q4_k、q5_k、q6_k、iq4_nl或q8_r（默认"),
              std::string::npos)
        << call;
  }
  EXPECT_NE(joined(english("convert --help").out)
                .find("f32,f16orbf16;fora.ggufalsoq8_0,q4_0,q4_1,q5_0,q5_1,q4_k,q5_k,q6_koriq4_nl"),
            std::string::npos);
  EXPECT_NE(joined(chinese("convert --help").out)
                .find("f32、f16或bf16；.gguf还可用q8_0、q4_0、q4_1、q5_0、q5_1、q4_k、q5_k、q6_k或iq4_nl"),
            std::string::npos);
}

TEST_F(LanguageCli, LangWorksBeforeAndAfterTheCommand) {
  const std::string help = chinese("chat --help").out;
  EXPECT_EQ(english("--lang zh chat --help").out, help);
  EXPECT_EQ(english("chat --help --lang zh").out, help);
  EXPECT_EQ(english("chat --lang=zh_CN --help").out, help);
  EXPECT_EQ(english("--lang zh help chat").out, help);
  EXPECT_EQ(chinese("chat --lang en --help").out, english("chat --help").out);
  EXPECT_EQ(english("--lang zh").out, chinese("").out);
  const Outcome unknown = run("chat --lang fr -p a");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.err.find("expected zh or en"), std::string::npos) << unknown.err;
}

TEST_F(LanguageCli, NotesAreChineseAndErrorsEnglish) {
  const std::string call = "chat" + demo + " -p 山居 -n 1 --greedy";
  EXPECT_NE(chinese(call).err.find("对话模板"), std::string::npos) << chinese(call).err;
  EXPECT_NE(chinese(call).err.find("已截断：达到 --max-tokens"), std::string::npos) << chinese(call).err;
  EXPECT_EQ(chinese(call).out, english(call).out);
  EXPECT_EQ(chinese("chat -m " + path("missing.pth") + " -p a").err,
            english("chat -m " + path("missing.pth") + " -p a").err);
  EXPECT_EQ(chinese("chat --temp 1").err, english("chat --temp 1").err);
  std::ofstream(path("lines")) << "/help\n/stats\n/think\n/exit\n";
  const std::string commands = chinese("chat" + demo + " --turns < " + path("lines")).err;
  for (const char* word : {"重新开始", "多行消息", "上下文", "是否思考由对话模板决定"}) {
    EXPECT_NE(commands.find(word), std::string::npos) << commands;
  }
}

TEST_F(LanguageCli, InspectIsInChineseToTheLastSource) {
  constexpr std::size_t column_of_sources = 40;
  for (const char* const name : {"v1-dense", "v2-moe", "v3-dense", "v3-moe", "hf-llama"}) {
    const std::string call = "inspect" + model_options(load_golden(name));
    std::istringstream lines(chinese(call).out);
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("  ") || line.starts_with("  model.") || line.starts_with("  lm_head")) continue;
      const std::string text = line.size() > column_of_sources ? line.substr(column_of_sources) : "";
      const bool is_file = text.find(".json") != std::string::npos;
      const bool has_chinese = std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
      EXPECT_TRUE(text.empty() || is_file || has_chinese) << line;
    }
  }
}

TEST_F(LanguageCli, MachineOutputHasNoLanguage) {
  const std::string model = " -m " + load_golden("v3-dense").model_path;
  for (const std::string& call : {"inspect --json" + model, "perplexity --json --tokens 1,2,3,4" + model,
                                  "tokenize -p 山居" + demo, "perplexity --tokens 1,2,3,4" + model}) {
    EXPECT_EQ(chinese(call).out, english(call).out) << call;
  }
  const auto answer = [](const Outcome& outcome) {
    auto json = nlohmann::json::parse(outcome.out);
    json.erase("timings");
    return json.dump();
  };
  const std::string chat = "chat --json --greedy -n 4 -p 山居" + demo,
                    generate = "generate --json --greedy -n 4 -p 山" + demo;
  EXPECT_EQ(answer(chinese(chat)), answer(english(chat)));
  EXPECT_EQ(answer(chinese(generate)), answer(english(generate)));
}

}  // namespace
}  // namespace minimind
