#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/chat/answer_parser.h"
#include "tests/support/attack.h"
#include "tests/support/fake_answer.h"
#include "tests/support/temporary_folder.h"
#include "tools/serve/api.h"
#include "weights/checkpoint/open_checkpoint.h"

// Requests that crashed or stopped llama.cpp's server, ollama or vLLM. README.md in this folder lists them.
namespace minimind {
namespace {

using Json = nlohmann::ordered_json;

ModelShelf::Settings server_settings() {
  ModelShelf::Settings settings{.arguments = {},
                                .chat_template = "",
                                .limits = {.parallel = 8, .kv_memory = std::size_t{64} << 20, .queue = 100},
                                .models_memory = std::size_t{20} << 20};
  settings.arguments.checkpoint.model = MINIMIND_SOURCE_DIR "/weights/demo/model.pth";
  settings.arguments.run.quiet = true;
  settings.arguments.run.threads = 1;
  return settings;
}

ApiOptions server_options() {
  ApiOptions options;
  options.defaults.parameters.max_tokens = 2;
  options.weights_folders = {MINIMIND_SOURCE_DIR "/tests/golden/v3-dense"};
  return options;
}

class ServerAttack : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    models_ = std::make_unique<ModelShelf>(server_settings());
    api_ = std::make_unique<Api>(*models_, server_options());
  }
  static void TearDownTestSuite() {
    api_.reset();
    models_.reset();
  }

  static std::shared_ptr<FakeAnswer> post(const std::string& path, const std::string& body) {
    auto answer = std::make_shared<FakeAnswer>();
    api_->handle(
        {.method = "POST", .path = path, .query = "", .headers = {{"content-type", "application/json"}}, .body = body},
        answer);
    EXPECT_TRUE(answer->wait());
    return answer;
  }

  // Expects an answer by which the client is told that the request is at fault, and then an answer to an honest client.
  static std::string expect_rejected(const std::string& path, const std::string& body) {
    const Cost cost;
    const auto answer = post(path, body);
    cost.expect_small();
    EXPECT_GE(answer->status(), 400) << body.substr(0, 300);
    EXPECT_LT(answer->status(), 500) << body.substr(0, 300) << answer->body();
    EXPECT_LT(answer->body().size(), 4000u);
    expect_alive();
    return answer->body();
  }
  static std::string expect_rejected(const std::string& path, const Json& body) {
    return expect_rejected(path, body.dump());
  }
  static void expect_alive() {
    EXPECT_EQ(post("/v1/completions", R"({"prompt": "a", "max_tokens": 1})")->status(), 200);
  }

  static Json chat(const Json& more = Json::object()) {
    Json body{{"messages", {{{"role", "user"}, {"content", "a"}}}}};
    body.update(more);
    return body;
  }

 private:
  static inline std::unique_ptr<ModelShelf> models_;
  static inline std::unique_ptr<Api> api_;
};

// CVE-2026-21869, llama.cpp: a negative n_discard moved tokens to before their buffer; a huge one ended the server.
TEST_F(ServerAttack, NegativeAndHugeCounts) {
  for (const char* const name :
       {"n_discard", "n_predict", "dry_allowed_length", "dry_penalty_last_n", "top_k", "max_tokens", "n", "best_of",
        "logprobs", "n_probs", "repeat_last_n", "n_keep", "id_slot"}) {
    for (const Json& value :
         {Json(-1), Json(-2147483648ll), Json(INT64_MIN), Json(UINT64_MAX), Json(1e300), Json("9")}) {
      const std::string_view is(name);
      if (is == "top_k" && value == -1) continue;            // is off, as in vLLM
      if (is.ends_with("_last_n") && value == -1) continue;  // is the whole text
      const Json body{{"prompt", "a"}, {name, value}};
      if (is == "n_keep" || is == "id_slot") {  // hints, whose values nobody reads
        EXPECT_LT(post("/v1/completions", body.dump())->status(), 500);
      } else {
        expect_rejected("/v1/completions", body);
      }
    }
  }
  for (const char* const name : {"num_predict", "num_ctx", "num_keep", "top_k", "repeat_last_n", "seed"}) {
    for (const Json& value : {Json(INT64_MIN), Json(UINT64_MAX), Json(1e300)}) {
      if (std::string_view(name) == "num_keep") continue;                    // is ignored
      if (std::string_view(name) == "seed" && value == INT64_MIN) continue;  // as in every API
      expect_rejected("/api/generate", Json{{"model", "minimind"}, {"prompt", "a"}, {"options", {{name, value}}}});
    }
  }
}

// CVE-2026-34756, vLLM: n copies of a request were made before any limit. CVE-2024-8939, vLLM: the same with best_of.
TEST_F(ServerAttack, HugeNumbersOfChoices) {
  for (const std::uint64_t n : {std::uint64_t{129}, std::uint64_t{1} << 31, UINT64_MAX}) {
    expect_rejected("/v1/chat/completions", chat({{"n", n}}));
    expect_rejected("/v1/completions", Json{{"prompt", "a"}, {"n", n}});
    expect_rejected("/v1/completions", Json{{"prompt", "a"}, {"best_of", n}});
    expect_rejected("/generate", Json{{"text", "a"}, {"sampling_params", {{"n", n * 1025}}}});
  }
  const Json prompts = std::vector<std::string>(5000, "a");
  expect_rejected("/v1/completions", Json{{"prompt", prompts}, {"n", 128}});
  expect_rejected("/generate", Json{{"text", prompts}, {"sampling_params", {{"n", 1024}}}});
}

// CVE-2025-48942, CVE-2025-48943, CVE-2025-48944, vLLM: a schema, a regular expression or a tool that was not valid
// ended the server. CVE-2025-48887: nested quantifiers took exponential time.
TEST_F(ServerAttack, SchemasAndPatternsThatAreNotValid) {
  const auto schema = [&](const Json& value) {
    return chat({{"response_format", {{"type", "json_schema"}, {"json_schema", {{"name", "n"}, {"schema", value}}}}}});
  };
  for (const Json& value : {Json{{"type", "string"}, {"pattern", "[a"}},
                            Json{{"type", "string"}, {"pattern", "(a"}},
                            Json{{"type", "string"}, {"pattern", "*"}},
                            Json{{"type", "string"}, {"pattern", "\\"}},
                            Json{{"type", "string"}, {"pattern", "a{4294967296}"}},
                            Json{{"type", "string"}, {"pattern", "(((a{1000}){1000}){1000}){1000}"}},
                            Json{{"type", "string"}, {"pattern", "(?<n>a)\\k<n>"}},
                            Json{{"type", "string"}, {"pattern", repeated("(", 50'000)}},
                            Json{{"type", "nothing"}},
                            Json{{"type", 1}},
                            Json{{"$ref", "#/nowhere"}},
                            Json{{"$ref", "http://127.0.0.1:1/x"}},
                            Json{{"$ref", "file:///etc/passwd"}},
                            Json{{"properties", 1}},
                            Json{{"enum", Json::array()}},
                            Json{{"allOf", {{{"type", "string"}}, {{"type", "number"}}}}},
                            Json{{"not", Json::object()}},
                            Json(1),
                            Json("string"),
                            Json::array()}) {
    SCOPED_TRACE(value.dump().substr(0, 200));
    expect_rejected("/v1/chat/completions", schema(value));
    expect_rejected(
        "/api/chat",
        Json{{"model", "minimind"}, {"messages", chat()["messages"]}, {"format", value.is_object() ? value : Json(1)}});
  }
  // These are valid: a text of them is begun.
  for (const Json& value : {Json{{"type", "string"}, {"minLength", 1'000'000'000}, {"maxLength", 2'000'000'000}},
                            Json{{"minItems", 1'000'000'000}, {"type", "array"}}, Json{{"$ref", "#"}}}) {
    const Cost cost;
    EXPECT_EQ(post("/v1/chat/completions", schema(value).dump())->status(), 200) << value;
    cost.expect_small();
  }
  for (const Json& tool :
       {Json(1), Json::object(), Json{{"type", "function"}}, Json{{"type", "function"}, {"function", {{"name", 1}}}},
        Json{{"type", "function"}, {"function", {{"name", "f"}, {"parameters", {{"type", 7}}}}}}}) {
    expect_rejected("/v1/chat/completions", chat({{"tools", {tool}}, {"tool_choice", "required"}}));
  }
  for (const std::string& grammar :
       {std::string("root ::= ("), std::string("root ::= root"), std::string("root ::= \"a\"{1000000}"),
        std::string("x ::= \"a\""), "root ::= " + repeated("(", 60'000)}) {
    expect_rejected("/v1/completions", Json{{"prompt", "a"}, {"grammar", grammar}});
  }
}

// CVE-2025-62426, CVE-2025-61620, vLLM: chat_template_kwargs and chat_template let a client choose what the server
// renders.
TEST_F(ServerAttack, TemplatesAndTheirVariablesAreNotTheClients) {
  const std::string bomb = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}";
  for (const char* const route : {"/v1/chat/completions", "/apply-template"}) {
    expect_rejected(route, chat({{"chat_template", bomb}}));
    for (const char* const name : {"chat_template", "tokenize", "messages", "conversation", "tools",
                                   "add_generation_prompt", "truncation", "documents"}) {
      expect_rejected(route, chat({{"chat_template_kwargs", {{name, bomb}}}}));
    }
  }
  expect_rejected("/api/generate", Json{{"model", "minimind"}, {"prompt", "a"}, {"template", bomb}});
}

// CVE-2025-29770, vLLM: every schema of a client became a file of outlines' cache. Here many different ones take no
// memory that stays, and no file.
TEST_F(ServerAttack, ManyDifferentSchemasFillNothing) {
  const auto ask = [&](int number) {
    const Json schema{{"type", "object"}, {"properties", {{"p" + std::to_string(number), {{"type", "integer"}}}}}};
    const Json format{{"type", "json_schema"}, {"json_schema", {{"name", "n"}, {"schema", schema}}}};
    return post("/v1/chat/completions", chat({{"response_format", format}, {"max_tokens", 1}}).dump())->status();
  };
  for (int i = 0; i < 20; ++i) ASSERT_EQ(ask(i), 200);
  const Cost cost;
  for (int i = 0; i < static_cast<int>(cases(200)); ++i) ASSERT_EQ(ask(100 + i), 200);
  cost.expect_small();
}

// CVE-2025-62164, vLLM: tensors in a request. CVE-2025-6242: addresses that the server fetches. CVE-2025-32444:
// pickles.
TEST_F(ServerAttack, NothingOfARequestIsLoadedOrFetched) {
  expect_rejected("/v1/completions", Json{{"prompt_embeds", "gAJ9Lg=="}, {"prompt", "a"}});
  for (const char* const url : {"http://169.254.169.254/latest", "file:///etc/passwd", "data:image/png;base64,AAAA"}) {
    const Json part{{"type", "image_url"}, {"image_url", {{"url", url}}}};
    expect_rejected("/v1/chat/completions", Json{{"messages", {{{"role", "user"}, {"content", {part}}}}}});
    expect_rejected("/api/generate", Json{{"model", "minimind"}, {"prompt", "a"}, {"images", {url}}});
  }
  expect_rejected("/generate", Json{{"text", "a"}, {"image_data", "http://127.0.0.1:1/"}});
  expect_rejected("/generate", Json{{"text", "a"}, {"custom_logit_processor", "gAJjb3MKc3lzdGVtCi4="}});
  expect_rejected("/generate", Json{{"text", "a"}, {"lora_path", "/tmp/evil"}});
}

// CVE-2024-37032, "Probllama", ollama: a digest with ../ in it named any file of the server.
TEST_F(ServerAttack, NamesOfModelsAreNoPaths) {
  for (const char* const name : {"../../../../etc/passwd", "..", "/etc/passwd", "sha256:../../x", "a/../../b",
                                 "minimind:../../etc/passwd", "\\..\\x"}) {
    for (const char* const route : {"/v1/completions", "/tokenize", "/api/generate"}) {
      expect_rejected(route, Json{{"model", name}, {"prompt", "a"}, {"content", "a"}});
    }
  }
  const TemporaryFolder folder;
  const std::filesystem::path golden = MINIMIND_SOURCE_DIR "/tests/golden/hf-qwen3-sharded";
  std::filesystem::copy_file(golden / "config.json", folder.path() + "/config.json");
  for (const char* const shard : {"../../../../etc/passwd", "/etc/passwd", "..", ".", "", "a/b"}) {
    folder.write("model.safetensors.index.json", Json{{"weight_map", {{"model.norm.weight", shard}}}}.dump());
    expect_refused([&] { open_checkpoint(folder.path(), {}); }, "the name of a file next to the index");
  }
}

// CVE-2024-39722, ollama: the answer told whether a file exists. CVE-2024-39721: /dev/random was read without end.
TEST_F(ServerAttack, FilesOutsideOfTheFolderAreNotToldApart) {
  const auto answer = [&](const std::string& path) {
    std::string body = expect_rejected("/update_weights_from_disk", Json{{"model_path", path}});
    for (std::size_t at = body.find(path); at != std::string::npos; at = body.find(path))
      body.replace(at, path.size(), "PATH");
    return body;
  };
  const std::string missing = answer("/no/such/file");
  for (const char* const path : {"/etc/passwd", "/etc/shadow", "/etc", "/dev/random", "/dev/zero", "/proc/self/mem"}) {
    EXPECT_EQ(answer(path), missing);
  }
  EXPECT_EQ(answer(std::string(server_options().weights_folders[0]) + "/../../../README.md"), missing);
}

TEST_F(ServerAttack, DevicesAreNotReadAsModels) {
  for (const char* const path : {"/dev/random", "/dev/zero", "/dev/full", "/proc/self/mem"}) {
    expect_refused([&] { open_checkpoint(path, {}); }, path);
  }
}

// CVE-2025-46560, vLLM: placeholders of a prompt were replaced in quadratic time.
TEST_F(ServerAttack, PromptsOfSpecialTokensAreReadInLinearTime) {
  for (const char* const piece :
       {"<|im_end|>", "<|im_start|>", "<think>", "<tool_call>", "<|im_", "<", "\xC2\xA0", " ", "\n", "a", "的"}) {
    const Cost cost;
    const auto answer = post(
        "/tokenize",
        Json{{"content", repeated(piece, 200'000 / std::string_view(piece).size())}, {"add_special", true}}.dump());
    cost.expect_small();
    EXPECT_EQ(answer->status(), 200) << piece;
  }
}

// CVE-2025-48887 and its kind: what a model answers is read in linear time, whatever it is.
TEST_F(ServerAttack, AnswersAreReadInLinearTime) {
  for (const std::string& piece :
       {std::string("<tool_call>"), std::string("<tool_call>{\"name\": \"f\", \"arguments\": {"),
        std::string("</tool_call>"), std::string("<think>"), std::string("<"), std::string("[{"),
        std::string("<tool_call>[[\"\\")}) {
    expect_harmless([&] {
      AnswerParser parser(ThinkState::none);
      std::vector<AnswerEvent> events;
      for (int i = 0; i < 50'000; ++i) parser.push(piece, events);
      parser.finish(events);
    });
  }
}

// JSON that takes more time or memory than its size.
TEST_F(ServerAttack, JsonBombs) {
  expect_rejected("/v1/completions", repeated("[", 1'000'000));
  expect_rejected("/v1/completions", repeated("{\"a\":", 200'000));
  expect_rejected("/v1/completions", "{\"prompt\": " + repeated("9", 1'000'000) + "}");
  expect_rejected("/v1/completions", "{\"prompt\": \"a\", \"x\": " + repeated("1", 10) + "e999999999}");
  expect_rejected("/v1/completions", "{\"prompt\": \"" + repeated("\\ud800", 100'000) + "\"}");
  expect_rejected("/v1/completions", "{" + repeated("\"prompt\": 1, ", 50'000) + "\"prompt\": 1}");
  std::string names = "{\"prompt\": \"a\"";
  for (int i = 0; i < 50'000; ++i) names += ", \"k" + std::to_string(i) + "\": {}";
  expect_rejected("/v1/completions", names + "}");
  std::string biases = "{\"prompt\": \"a\", \"logit_bias\": {\"0\": 1000";
  for (int i = 1; i < 50'000; ++i) biases += ", \"" + std::to_string(i) + "\": 1";
  expect_rejected("/v1/completions", biases + "}}");
}

}  // namespace
}  // namespace minimind
