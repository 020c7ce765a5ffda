#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/calibrate/type_plan.h"
#include "runtime/chat/session_file.h"
#include "runtime/engine/context.h"
#include "runtime/grammar/gbnf.h"
#include "runtime/jinja/jinja.h"
#include "runtime/tokenizer/tokenizer.h"
#include "runtime/tokenizer/tokenizer_json.h"
#include "tests/support/golden_tokenizer.h"
#include "tests/support/linear_time.h"
#include "tests/support/temporary_file.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/torch_archive.h"
#include "tools/commands/calibration_text.h"
#include "weights/checkpoint/open_checkpoint.h"

// As reader_time_test.cpp, for texts, sessions and LoRA files.
namespace minimind {
namespace {

TEST(TextTime, EncodingIsLinear) {
  const Tokenizer own(read_tokenizer_json(own_tokenizer));
  std::vector<Construct> constructs;
  for (const char* const item : {"a", " ", "\n", "1", "床", "\xff", "a b ", "'s", "<|im_end|>", "<|im_", "\t \n"}) {
    constructs.push_back(repeated(item));
  }
  expect_linear("encode", constructs, [&](const std::string& text) { own.encode(text); });
}

TEST(TextTime, TypePlansAreLinear) {
  expect_linear("--plan",
                {numbered("tensors", "", "", [](std::size_t i) { return fmt::format("layers.{}.weight q8_0\n", i); }),
                 repeated("\n"), repeated("# a\n"), repeated("a", "", " q8_0\n"), repeated(" 1", "a q8_0", "\n")},
                [](const std::string& text) { parse_type_plan(text, "x"); });
}

TEST(TextTime, GrammarsAreLinear) {
  const auto rule = [](std::size_t i) { return fmt::format("r{} ::= \"a\" r{}?\n", i, i + 1); };
  const auto reference = [](std::size_t i) { return fmt::format("root{0} ::= \"a\"\nb{0} ::= root{0}\n", i); };
  expect_linear(
      "GBNF",
      {repeated("a", "root ::= \"", "\""), repeated("\\u4e00", "root ::= \"", "\""), repeated("\"a\" ", "root ::= "),
       repeated("| \"a\" ", "root ::= \"b\" "), repeated("[a-z] ", "root ::= "), repeated("a-z", "root ::= [", "]"),
       repeated("你", "root ::= [", "]"), repeated("(", "root ::= "), repeated("(\"a\")* ", "root ::= "),
       repeated("\"a\"{3} ", "root ::= "), repeated("# a\n"), repeated(" ", "root ::= \"a\""),
       repeated("a", "", " ::= \"a\""), numbered("rules", "root ::= r0\n", "", rule),
       numbered("references", "root ::= \"a\"\n", "", reference)},
      [](const std::string& text) { parse_grammar(text, "x"); }, megabyte / 4);
}

TEST(TextTime, TemplatesAreLinear) {
  constexpr std::size_t quarter_of_limit = (std::size_t{1} << 16) - 100;
  expect_linear(
      "template",
      {repeated("a"), repeated("\n"), repeated("{"), repeated("{{ x }}"), repeated("{# a #}\n"), repeated("{% if x %}"),
       repeated("{% if x %}a{% endif %}"), repeated("{% set x = 1 %}\n"), repeated("+1", "{{ 1", " }}"),
       repeated("~x", "{{ x", " }}"), repeated("|trim", "{{ x", " }}"), repeated("(", "{{ ", " }}"),
       repeated("1,", "{{ [", "] }}"), repeated("a", "{{ '", "' }}"), repeated(".a", "{{ x", " }}"),
       repeated("not ", "{{ ", "x }}"), repeated("{% elif x %}", "{% if x %}", "{% endif %}")},
      [](const std::string& text) {
        jinja::Dict variables;
        variables.set("x", std::string("a"));
        JinjaTemplate(text, "x").render(variables, 0);
      },
      quarter_of_limit);
}

TEST(TextTime, SessionsAreLinear) {
  const TemporaryFolder folder;
  const ModelIdentity model =
      identify(open_checkpoint(MINIMIND_SOURCE_DIR "/tests/golden/v3-dense/model.pth", {}), std::nullopt);
  Context context(model.config, 64);
  const std::string path = folder.path() + "/session";
  const auto session_of = [&](const std::vector<Message>& messages) {
    ConversationState state;
    state.messages = messages;
    save_session(path, model, state, context);
    return read_whole_file(path);
  };
  const auto one = [&](std::size_t bytes) {
    return session_of({{.role = Role::user, .content = std::string(bytes, 'a')}});
  };
  const auto many = [&](std::size_t bytes) {
    const Message message{.role = Role::user, .content = std::string(40, '\n')};
    return session_of(std::vector<Message>(bytes / 100, message));
  };
  const auto calls = [&](std::size_t bytes) {
    Message answer{.role = Role::assistant, .content = ""};
    answer.tool_calls.assign(bytes / 80, {.id = "1", .name = "f", .arguments = "{\"a\": 1}"});
    return session_of({{.role = Role::user, .content = "a"}, answer});
  };
  const TemporaryFile file;
  expect_linear("session", {{"one message", one}, {"messages", many}, {"calls", calls}}, [&](const std::string& bytes) {
    file.write(bytes);
    load_session(file.path(), model, context);
  });
}

TEST(TextTime, LorasAreLinear) {
  using pickle_writer::tensor;
  using pickle_writer::text;
  const auto entries = [](const char* name, const std::vector<std::string>& halves) {
    return numbered(name, "}(", "u", [=](std::size_t i) {
      const std::string& half = halves[i % halves.size()];
      return text(fmt::format("model.layers.{}.self_attn.q_proj.lora.{}.weight", i / halves.size(), half)) +
             tensor({.storage_elements = 1, .shape = {1, 1}, .strides = {1, 1}});
    });
  };
  const TemporaryFile file;
  expect_linear("LoRA", {entries("pairs", {"A", "B"}), entries("A alone", {"A"}), entries("other names", {"C"})},
                [&](const std::string& body) {
                  file.write(torch_zip(body, {{"0", std::string(4, '\0')}}));
                  open_checkpoint(MINIMIND_SOURCE_DIR "/tests/golden/v3-dense/model.pth",
                                  {.overrides = {}, .config_path = {}, .loras = {{.path = file.path()}}});
                });
}

TEST(TextTime, CalibrationTextsAreLinear) {
  Config config;
  config.vocab_size = 430;
  config.max_position_embeddings = 1000;
  const TemporaryFolder folder;
  const auto read = [&](const char* name) {
    return [&folder, &config, name](const std::string& text) {
      read_calibration_text(folder.write(name, text), config, own_tokenizer, 10'000);
    };
  };
  expect_linear("text", {repeated("a"), repeated("\n"), repeated("床前\n"), repeated("\xff")}, read("a.txt"));
  expect_linear("lines",
                {repeated("{\"text\": \"a\"}\n"), repeated("\n"), repeated("a", "{\"text\": \"", "\"}\n"),
                 repeated("{\"text\": \"a\"}\n\n\n\n")},
                read("a.jsonl"));
}

}  // namespace
}  // namespace minimind
