#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/cli.h"
#include "tests/support/pseudo_terminal.h"

namespace minimind {
namespace {

namespace fs = std::filesystem;

// What would change a terminal's title, its colours (7 and 8 bits), delete, and write backwards.
const std::string hostile =
    "\x1b]0;title\x07\x1b[31m\xC2\x9B"
    "31m\x7f\u202E\u2066";
const std::string harmless = "^[]0;title^G^[[31m<U+009B>31m^?<U+202E><U+2066>";

class Escapes : public Cli {
 protected:
  // Runs the command on a terminal; returns all that it shows.
  std::string shown(const std::string& arguments) const {
    const std::string command = program() + " " + arguments;
    PseudoTerminal terminal([&] {
      setenv("TERM", "xterm", 1);
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      return 127;
    });
    EXPECT_NE(terminal.status(), -1) << arguments;
    while (terminal.read_available()) continue;
    return terminal.shown();
  }

  void expect_harmless(const std::string& arguments, const std::string& expected = harmless) const {
    const std::string text = shown(arguments);
    EXPECT_NE(text.find(expected), std::string::npos) << arguments << ": " << testing::PrintToString(text);
    for (const char* const bytes : {"\x1b", "\x07", "\xC2\x9B", "\x7f", "\u202E", "\u2066"}) {
      EXPECT_EQ(text.find(bytes), std::string::npos) << arguments << ": " << testing::PrintToString(text);
    }
  }

  // The demo in a folder of its own, whose tokenizer has been changed.
  template <class Change>
  std::string changed_demo(const Change& change) const {
    const fs::path demo_folder = MINIMIND_SOURCE_DIR "/weights/demo";
    fs::create_directories(path("model"));
    for (const char* const name : {"model.pth", "tokenizer.json", "tokenizer_config.json"}) {
      fs::copy_file(demo_folder / name, path(std::string("model/") + name), fs::copy_options::overwrite_existing);
    }
    auto tokenizer = nlohmann::ordered_json::parse(read_whole_file(path("model/tokenizer.json")));
    auto config = nlohmann::ordered_json::parse(read_whole_file(path("model/tokenizer_config.json")));
    change(tokenizer, config);
    std::ofstream(path("model/tokenizer.json")) << tokenizer;
    std::ofstream(path("model/tokenizer_config.json")) << config;
    return path("model/model.pth");
  }

  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }
};

TEST_F(Escapes, GeneratedTextCannotDriveATerminal) {
  const std::string grammar = file("g", "root ::= " + nlohmann::json(hostile).dump());
  const std::string generate = "generate -q -p a --grammar " + grammar + demo;
  expect_harmless(generate);
  EXPECT_EQ(run(generate).out, hostile) << "a file gets the bytes";
  expect_harmless(generate + " --json", "<U+009B>31m^?<U+202E><U+2066>");
  expect_harmless("chat -q -p a --grammar " + grammar + demo);
  EXPECT_EQ(run("chat -q -p a --grammar " + grammar + demo).out, hostile + "\n");
}

TEST_F(Escapes, ACharacterOfSeveralTokensIsShownWhole) {
  const std::string text = "😀\t¢\n";
  const std::string generate =
      "generate -q -p a --grammar " + file("g", "root ::= " + nlohmann::json(text).dump()) + demo;
  EXPECT_EQ(shown(generate), "😀\t¢\r\n");
}

TEST_F(Escapes, PromptsAndTokensCannotDriveATerminal) {
  const std::string chat = nlohmann::json{{"messages", {{{"role", "user"}, {"content", hostile}}}}}.dump();
  const std::string render = "render -f " + file("chat.json", chat) + demo;
  expect_harmless(render);
  EXPECT_NE(run(render).out.find(hostile), std::string::npos);
  expect_harmless("render --jsonl -f " + path("chat.json") + demo, "<U+009B>31m^?<U+202E>");
  const std::string ids = run("tokenize -f " + file("text", hostile) + demo).out;
  const std::string decode = "tokenize --decode -p " + ids.substr(0, ids.size() - 1) + demo;
  expect_harmless(decode);
  EXPECT_EQ(run(decode).out, hostile);
}

TEST_F(Escapes, ErrorsOfTemplatesCannotDriveATerminal) {
  const std::string source = file("t.jinja", "{{ raise_exception(messages[0].content) }}");
  const std::string chat =
      nlohmann::json{{"messages", {{{"role", "user"}, {"content", hostile + "\nminimind: ok"}}}}}.dump();
  const std::string render = "render --template " + source + " -f " + file("chat.json", chat);
  expect_harmless(render, harmless + " minimind: ok\r\n");
  const std::string piped = run(render).err;
  EXPECT_NE(piped.find(harmless), std::string::npos) << "stderr is escaped wherever it goes: " << piped;
  file("prompt", hostile);
  expect_harmless("chat -q --template " + source + " -f " + path("prompt") + demo);
}

TEST_F(Escapes, NamesInAModelsFilesCannotDriveATerminal) {
  const std::string model = changed_demo([&](auto& tokenizer, auto& config) {
    for (auto& token : tokenizer["added_tokens"]) {
      if (token["content"] == "<|im_end|>") token["content"] = hostile;
    }
    auto& vocab = tokenizer["model"]["vocab"];
    vocab[hostile] = vocab["<|im_end|>"];
    vocab.erase("<|im_end|>");
    config["eos_token"] = hostile;
    for (auto& [id, token] : config["added_tokens_decoder"].items()) {
      if (token["content"] == "<|im_end|>") token["content"] = hostile;
    }
  });
  expect_harmless("inspect " + model, "ends a text with 2 '\\x1b]0;title\\x07\\x1b[31m");
  EXPECT_NE(run("inspect " + model).out.find("ends a text with 2 '\\x1b]0;title\\x07\\x1b[31m"), std::string::npos);
  file("model/config.json", nlohmann::json{{"hidden_act", hostile}}.dump());
  expect_harmless("inspect --config " + path("model/config.json") + " " + model, "\\x1b]0;title\\x07");
}

TEST_F(Escapes, NamesOfFilesCannotDriveATerminal) {
  const std::string name = hostile + "\n.pth", folder = path("out/");
  fs::create_directories(folder);
  for (const std::string& each : {name, std::string("b.pth")}) {
    fs::copy_file(MINIMIND_SOURCE_DIR "/weights/demo/model.pth", folder + each);
  }
  const std::string quoted = "'" + folder + name + "'";
  expect_harmless("inspect " + quoted);
  expect_harmless("inspect --json " + quoted, "<U+009B>31m^?<U+202E><U+2066>");
  expect_harmless("inspect " + quoted + "x");
  expect_harmless("inspect " + folder);
  expect_harmless("convert -q " + quoted + " " + quoted + ".gguf && " + program() + " inspect " + quoted + ".gguf");
  expect_harmless("generate -n 1 -p a --tokenizer " + std::string(MINIMIND_SOURCE_DIR "/weights/demo") + " " + quoted);
  PseudoTerminal chat([&] {
    setenv("TERM", "xterm", 1);
    execl(program().c_str(), "minimind", "chat", "-m", folder.c_str(), nullptr);
    return 127;
  });
  EXPECT_TRUE(chat.wait_for("number of the one to load")) << testing::PrintToString(chat.shown());
  EXPECT_NE(chat.shown().find(harmless), std::string::npos) << testing::PrintToString(chat.shown());
  EXPECT_EQ(chat.shown().find('\x1b'), std::string::npos) << testing::PrintToString(chat.shown());
}

TEST_F(Escapes, TextThatIsCheckedCannotDriveATerminal) {
  const std::string grammar = file("g", "root ::= \"a\"");
  expect_harmless("validate --grammar " + grammar + " " + file("text", hostile), "\\x1b]0;title\\x07");
  expect_harmless("validate --jsonl --grammar " + grammar + " " + path("text"), "title");
  file("in.jsonl", nlohmann::json{{"prompt", "a"}, {hostile, 1}}.dump() + "\n");
  const std::string batch = "batch " + path("in.jsonl") + " -o '" + path(hostile) + "'" + demo;
  EXPECT_EQ(run(batch).status, 0);
  expect_harmless(batch, harmless + ": all 1 requests have results or errors already");
}

}  // namespace
}  // namespace minimind
