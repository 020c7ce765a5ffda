#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/cli.h"

namespace minimind {
namespace {

using Render = Cli;

const std::string tokenizer = MINIMIND_SOURCE_DIR "/tests/golden_tokenizer/";

TEST_F(Render, WritesOnePromptPerLineAsJson) {
  std::ofstream(path("chat.jinja")) << "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{{ more }}";
  std::ofstream(path("in")) << R"({"messages": [{"role": "user", "content": "你好\""}], "more": 1})"
                            << "\n\n"
                            << R"({"messages": []})"
                            << "\n";
  const Outcome outcome = run("render --jsonl --template " + path("chat.jinja") + " < " + path("in"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "\"user: 你好\\\"\\n1\"\n\"\"\n");
}

TEST_F(Render, WritesTheIdsOfThePrompt) {
  std::ofstream(path("chat.jinja")) << "<|im_start|>{{ messages[0].content }}";
  std::ofstream(path("in")) << R"({"messages": [{"role": "user", "content": "a<|im_end|>"}]})"
                            << "\n";
  const std::string demo_tokenizer = " --tokenizer " MINIMIND_SOURCE_DIR "/weights/demo";
  const auto line = [&](const std::string& arguments) {
    const std::string out = run(arguments).out;
    return out.substr(0, out.find('\n'));
  };
  const auto tokens = [&](const std::string& text) { return line("tokenize" + demo_tokenizer + " -p '" + text + "'"); };
  const std::string input = " < " + path("in"), template_option = " --template " + path("chat.jinja");
  const std::string render = "render --ids" + demo_tokenizer + template_option;
  EXPECT_EQ(line(render + input), tokens("<|im_start|>a<|im_end|>"));
  const std::string plain = line(render + " --plain-content" + input);
  EXPECT_TRUE(plain.starts_with(tokens("<|im_start|>") + ",")) << plain;
  EXPECT_EQ((plain + ",").find("," + tokens("<|im_end|>") + ","), std::string::npos) << plain;
  EXPECT_EQ(run("tokenize --decode" + demo_tokenizer + " -p " + plain).out, "<|im_start|>a<|im_end|>");
  EXPECT_EQ(line(render + " --jsonl --plain-content" + input), "[" + plain + "]");
  EXPECT_EQ(run("render --plain-content" + template_option + input).status, 2) << "it does not change the text";
  EXPECT_EQ(run("render --ids" + template_option + input).status, 2) << "no tokenizer";
}

TEST_F(Render, WritesPlainTextWithoutJsonl) {
  std::ofstream(path("chat.jinja")) << "<{{ messages[0].content }}>\n";
  const Outcome outcome =
      run("render --template " + path("chat.jinja") + R"( -p '{"messages": [{"role": "user", "content": "a\nb"}]}')");
  EXPECT_EQ(outcome.out, "<a\nb>") << outcome.err;
}

TEST_F(Render, TemplatesHaveTheSpecialTokens) {
  std::ofstream(path("chat.jinja")) << "{{ eos_token is string }}{{ sep_token is defined }}";
  const Outcome outcome =
      run("render --tokenizer " + tokenizer + " --template " + path("chat.jinja") + R"( -p '{"messages": []}')");
  EXPECT_EQ(outcome.out, "TrueFalse") << outcome.err;
}

TEST_F(Render, UsesTheFamilysTemplateIfThereIsNoOther) {
  for (const char* name : {"model.pth", "tokenizer.json"}) {
    std::filesystem::copy_file(std::string(MINIMIND_SOURCE_DIR "/weights/demo/") + name, path(name));
  }
  const Outcome outcome = run(
      "render -m " + path("model.pth") +
      R"( -p '{"messages": [{"role": "user", "content": "hi"}], "add_generation_prompt": true, "open_thinking": true}')");
  EXPECT_EQ(outcome.out, "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n<think>\n") << outcome.err;
  EXPECT_NE(outcome.err.find("has no chat template; using that of family v3"), std::string::npos) << outcome.err;
}

TEST_F(Render, ATokenizerWithoutATemplateRequiresAModelOrATemplate) {
  std::filesystem::copy_file(tokenizer + "tokenizer.json", path("tokenizer.json"));
  const std::string render = R"(render -p '{"messages": [{"role": "user", "content": "hi"}]}' --tokenizer )";
  const Outcome outcome = run(render + path("tokenizer.json"));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err, "minimind: " + path("tokenizer.json") +
                             ": has no chat template; give one with --template, or name the model with -m to use its "
                             "family's\n");
  EXPECT_EQ(run(render + path("tokenizer.json") + demo).out, "<|im_start|>user\nhi<|im_end|>\n");
}

TEST_F(Render, ATemplateAndAModelUseTheModelsTokenizer) {
  std::ofstream(path("chat.jinja")) << "<|im_start|>";
  const std::string render = R"(render --ids -p '{"messages": []}' --template )" + path("chat.jinja");
  EXPECT_EQ(run(render + demo).out, "1\n");
}

TEST_F(Render, PrefersATemplateFileToTheConfig) {
  std::filesystem::copy(tokenizer, path("tokenizer"));
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(path("tokenizer/" + name)) << text;
  };
  const auto render = [&] {
    return run("render --tokenizer " + path("tokenizer") + R"( -p '{"messages": [], "tools": []}')");
  };
  write("tokenizer_config.json", R"({"chat_template": [{"name": "default", "template": "config"},
                                                       {"name": "tool_use", "template": "{{ 1 + }}"}]})");
  EXPECT_EQ(render().err, "minimind: " + path("tokenizer/tokenizer_config.json") +
                              ": chat_template named tool_use: line 1, column 8: found '}}', expected an expression\n");
  write("chat_template.jinja", "file");
  EXPECT_EQ(render().out, "file");
  std::filesystem::create_directory(path("tokenizer/additional_chat_templates"));
  write("additional_chat_templates/tool_use.jinja", "tools");
  EXPECT_EQ(render().out, "tools");
  write("chat_template.jinja", "{{ x.y }}");
  EXPECT_EQ(run("render --tokenizer " + path("tokenizer") + R"( -p '{"messages": []}')").err,
            "minimind: " + path("tokenizer/chat_template.jinja") + ": line 1, column 5: 'x' is undefined\n");
}

TEST_F(Render, ErrorsNameTheLineAndThePlaceInTheTemplate) {
  std::ofstream(path("chat.jinja")) << "{{ messages[0].content.x.y }}";
  std::ofstream(path("in")) << R"({"messages": [{"role": "user", "content": "a"}]})"
                            << "\n";
  const Outcome outcome = run("render --jsonl --template " + path("chat.jinja") + " < " + path("in"));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err, "minimind: line 1 of the input: " + path("chat.jinja") +
                             ": line 1, column 25: a string has no attribute 'x'\n");
  std::ofstream(path("in")) << "{}\n";
  EXPECT_EQ(run("render --jsonl --template " + path("chat.jinja") + " < " + path("in")).err,
            "minimind: line 1 of the input: has no \"messages\"\n");
}

}  // namespace
}  // namespace minimind
