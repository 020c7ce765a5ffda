#include "tools/options/options.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/pseudo_terminal.h"
#include "tests/support/temporary_file.h"

namespace minimind {
namespace {

using Ids = std::vector<std::int32_t>;

// Returns options parsed from a command line.
template <class Options>
Options parse(std::vector<std::string> arguments) {
  Options options;
  CLI::App app;
  CommandOptions command(app);
  options.add_to(command);
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 requires
  app.parse(arguments);
  return options;
}

// std::cin reads `text` during its lifetime.
class StandardInput {
 public:
  explicit StandardInput(const std::string& text) : text_(text), before_(std::cin.rdbuf(text_.rdbuf())) {}
  ~StandardInput() { std::cin.rdbuf(before_); }

 private:
  std::istringstream text_;
  std::streambuf* before_;
};

TEST(TokenIds, AreSeparatedByCommasOrWhitespace) {
  for (const char* text : {"1,2,3", "1, 2, 3", "1 2 3", "[1,2,3]", " [ 1,\n2,\t3 ]\r\n", "1,,2,3,"}) {
    EXPECT_EQ(parse_token_ids(text, "--tokens"), (Ids{1, 2, 3})) << text;
  }
  EXPECT_EQ(parse_token_ids("0 2147483647", "x"), (Ids{0, 2147483647}));
  EXPECT_EQ(parse_token_ids("", "x"), Ids{});
  EXPECT_EQ(parse_token_ids("[]", "x"), Ids{});
}

TEST(TokenIds, AnInvalidIdIsShownWithItsSource) {
  for (const char* bad :
       {"x", "1.5", "0x10", "1e3", "2147483648", "99999999999999999999", "1-2", "+1", "\"1\"", "一"}) {
    const std::string text = std::string("1, ") + bad + ", 3";
    EXPECT_THROW(parse_token_ids(text, "ids.txt"), UsageError) << bad;
    const std::string error = error_of([&] { parse_token_ids(text, "ids.txt"); });
    EXPECT_TRUE(error.starts_with("ids.txt: ")) << error;
    EXPECT_NE(error.find(bad), std::string::npos) << error;
  }
}

TEST(TokenIds, ErrorsEscapeControlCharacters) {
  const std::string error = error_of([] { parse_token_ids("\x1b[2J\x93NUMPY", "x"); });
  EXPECT_EQ(error.find('\x1b'), std::string::npos) << error;
}

TEST(TokenOptions, ReadTheOneThatIsGiven) {
  EXPECT_EQ(parse<TokenOptions>({"--tokens", "1,2"}).read(), (Ids{1, 2}));
  EXPECT_EQ(parse<TokenOptions>({"--tokens", "[5]"}).read(), (Ids{5}));
  const TemporaryFile file("7\n8\n");
  EXPECT_EQ(parse<TokenOptions>({"--tokens-file", file.path()}).read(), (Ids{7, 8}));
}

TEST(TokenOptions, NeitherOrBothIsAUsageError) {
  EXPECT_THROW(parse<TokenOptions>({}).read(), UsageError);
  EXPECT_THROW(parse<TokenOptions>({"--tokens", "1", "--tokens-file", "x"}).read(), UsageError);
}

TEST(TokenOptions, NoIdsAreAUsageError) {
  const TemporaryFile file("\n");
  EXPECT_THROW(parse<TokenOptions>({"--tokens", ","}).read(), UsageError);
  EXPECT_THROW(parse<TokenOptions>({"--tokens-file", file.path()}).read(), UsageError);
}

TEST(TokenOptions, AFileThatCannotBeReadIsNamed) {
  EXPECT_NE(error_of([] {
              parse<TokenOptions>({"--tokens-file", "/nowhere/ids"}).read();
            }).find("/nowhere/ids"),
            std::string::npos);
}

TEST(TextOptions, ReadPromptFileOrStdinVerbatim) {
  EXPECT_EQ(parse<TextOptions>({"-p", " 你好\n"}).read(), " 你好\n");
  const std::string content("a\r\n\0\x7F\n", 6);
  const TemporaryFile file(content);
  EXPECT_EQ(parse<TextOptions>({"-f", file.path()}).read(), content);
  const StandardInput input(content);
  EXPECT_EQ(parse<TextOptions>({}).read(), content);
}

TEST(TextOptions, RejectTextThatIsNotUtf8) {
  const TemporaryFile file("ab\xE5\xBA");
  EXPECT_THROW(parse<TextOptions>({"-f", file.path()}).read(), Error);
  EXPECT_THROW(parse<TextOptions>({"-p", "\xFF"}).read(), Error);
}

TEST(TextOptions, APromptMayLookLikeAnOptionOrAList) {
  for (const char* prompt : {"-5 degrees", "--stop", "[1,2]", "- item", "{}", "\"quoted\"", "a=b", "%%"}) {
    EXPECT_EQ(parse<TextOptions>({"-p", prompt}).read(), prompt);
  }
}

TEST(TextOptions, AnEmptyPromptDoesNotReadStdin) {
  const StandardInput input("not requested");
  EXPECT_EQ(parse<TextOptions>({"-p", ""}).read(), "");
}

TEST(TextOptions, ATerminalIsToldHowToEndTheText) {
  PseudoTerminal terminal([] { return read_standard_input() == "春\n" ? 0 : 1; });
  ASSERT_TRUE(terminal.wait_for("reading from the terminal; end with Ctrl-D"));
  terminal.type("春\n\x04");
  EXPECT_EQ(terminal.status(), 0);
}

TEST(TextOptions, PromptAndFileAreAUsageError) {
  EXPECT_THROW(parse<TextOptions>({"-p", "a", "-f", "b"}), CLI::ParseError);
}

TEST(CheckpointOptions, OverrideNothingByDefault) {
  const OpenOptions options = parse<CheckpointOptions>({}).open_options();
  EXPECT_FALSE(options.config_path);
  EXPECT_TRUE(options.loras.empty());
  EXPECT_FALSE(options.overrides.heads || options.overrides.kv_heads || options.overrides.experts_per_token);
  EXPECT_FALSE(options.overrides.yarn);
}

TEST(CheckpointOptions, ArePassedOn) {
  const auto given =
      parse<CheckpointOptions>({"-m", "model.pth", "--config", "c.json", "--heads", "16", "--kv-heads", "8",
                                "--experts-per-token", "2", "--lora", "a.pth", "--lora", "b.pth:0.5"});
  EXPECT_EQ(given.model, "model.pth");
  const OpenOptions options = given.open_options();
  EXPECT_EQ(options.config_path, "c.json");
  EXPECT_EQ(options.overrides.heads, 16u);
  EXPECT_EQ(options.overrides.kv_heads, 8u);
  EXPECT_EQ(options.overrides.experts_per_token, 2u);
  ASSERT_EQ(options.loras.size(), 2u);
  EXPECT_EQ(options.loras[0].path, "a.pth");
  EXPECT_EQ(options.loras[1].path, "b.pth");
  EXPECT_EQ(options.loras[1].scale, 0.5);
}

TEST(CheckpointOptions, RopeScalingIsNoneOrYarn) {
  EXPECT_EQ(parse<CheckpointOptions>({"--rope-scaling", "yarn"}).open_options().overrides.yarn, true);
  EXPECT_EQ(parse<CheckpointOptions>({"--rope-scaling", "none"}).open_options().overrides.yarn, false);
  for (const char* bad : {"linear", "Yarn", ""}) {
    EXPECT_THROW(parse<CheckpointOptions>({"--rope-scaling", bad}), CLI::ParseError) << bad;
  }
}

TEST(CheckpointOptions, CountsMustBeWholeNumbers) {
  for (const char* option : {"--heads", "--kv-heads", "--experts-per-token"}) {
    for (const char* bad : {"-1", "x", "1.5", "", "99999999999999999999999"}) {
      EXPECT_THROW(parse<CheckpointOptions>({option, bad}), CLI::ParseError) << option << " " << bad;
    }
  }
}

TEST(CheckpointOptions, ALoraTakesOneValue) {
  const auto given = parse<CheckpointOptions>({"--lora", "a.pth", "b.pth"});
  EXPECT_EQ(given.loras, std::vector<std::string>{"a.pth"});
  EXPECT_EQ(given.model, "b.pth");
}

TEST(RunOptions, HaveDefaults) {
  const auto options = parse<RunOptions>({});
  EXPECT_EQ(options.weight_type(), std::nullopt);
  EXPECT_EQ(options.compute, Compute::f32);
  EXPECT_FALSE(options.threads);
  EXPECT_FALSE(options.quiet);
}

TEST(RunOptions, ArePassedOn) {
  const auto options = parse<RunOptions>({"--type", "q8_0", "-t", "3", "-q", "--compute", "BF16"});
  EXPECT_EQ(options.compute, Compute::bf16);
  EXPECT_EQ(options.weight_type(), DType::q8_0);
  EXPECT_EQ(options.threads, std::optional<std::size_t>(3));
  EXPECT_TRUE(options.quiet);
}

TEST(RunOptions, AnUnknownTypeIsAUsageError) {
  for (const char* bad : {"q4", "f64", "int8", ""}) {
    EXPECT_THROW(parse<RunOptions>({"--type", bad}), CLI::ParseError) << bad;
  }
}

TEST(RunOptions, ThreadsAreOneToAThousandAndTwentyFour) {
  EXPECT_EQ(parse<RunOptions>({"-t", "1024"}).threads, std::optional<std::size_t>(1024));
  for (const char* bad : {"0", "-1", "1025", "two", "1.5"}) {
    EXPECT_THROW(parse<RunOptions>({"-t", bad}), CLI::ParseError) << bad;
  }
}

TEST(ModelPath, IsTheGivenOne) {
  EXPECT_EQ(model_path(MINIMIND_SOURCE_DIR "/weights/demo/model.pth"), MINIMIND_SOURCE_DIR "/weights/demo/model.pth");
  EXPECT_NE(error_of([] { model_path("/nowhere/model.pth"); }).find("/nowhere/model.pth: "), std::string::npos);
}

TEST(StandardInputText, IsReadToTheEnd) {
  const StandardInput input(std::string("a\n\0b", 4));
  EXPECT_EQ(read_standard_input(), std::string("a\n\0b", 4));
}

}  // namespace
}  // namespace minimind
