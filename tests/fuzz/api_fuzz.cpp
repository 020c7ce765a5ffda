#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "tests/fuzz/mutate_json.h"
#include "tests/support/fake_answer.h"
#include "tools/serve/api.h"

namespace {

using namespace minimind;

constexpr const char* routes[] = {"/api/chat",
                                  "/api/generate",
                                  "/generate",
                                  "/tokenize",
                                  "/detokenize",
                                  "/apply-template",
                                  "/update_weights_from_disk",
                                  "/flush_cache",
                                  "/v1/chat/completions",
                                  "/v1/completions",
                                  "/reset_prefix_cache",
                                  "/api/show",
                                  "/v1/responses",
                                  "/v1/inside",
                                  "/generate_stream",
                                  "/"};

ModelShelf::Settings settings() {
  ModelShelf::Settings settings{.arguments = {},
                                .chat_template = "",
                                .limits = {.parallel = 4, .kv_memory = std::size_t{1} << 20, .queue = 64},
                                .models_memory = std::size_t{1} << 20};
  settings.arguments.checkpoint.model = "tests/golden/v3-dense/model.pth";
  settings.arguments.tokenizer = "tests/golden_tokenizer";
  settings.arguments.run.quiet = true;
  settings.arguments.run.threads = 1;
  settings.arguments.context = 32;
  return settings;
}

ApiOptions options() {
  ApiOptions options;
  options.defaults.parameters.max_tokens = 4;
  options.seed = 7;
  options.weights_folders = {"tests/golden/v3-fp32"};
  options.inside = true;
  return options;
}

Api& api() {
  static ModelShelf models(settings());
  static Api api(models, options());
  return api;
}

std::shared_ptr<FakeAnswer> post(const char* route, std::string_view body) {
  const auto answer = std::make_shared<FakeAnswer>();
  api().handle({.method = "POST",
                .path = route,
                .query = "",
                .headers = {{"content-type", "application/json"}},
                .body = std::string(body)},
               answer);
  return answer;
}

}  // namespace

// Posts the input to the route that its first byte gives: Ollama's, that of a rollout, and all others. Each answer must
// come, and must not be the fault of the server. A request may be for thousands of texts: then the client goes, and the
// next one is answered.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const char* const route = routes[static_cast<std::uint8_t>(data[0] - 'd') % std::size(routes)];
  auto answer = post(route, {reinterpret_cast<const char*>(data) + 1, size - 1});
  if (!answer->wait(std::chrono::seconds(2))) {
    answer->disconnect();
    answer = post("/v1/completions", R"({"prompt": "a"})");
  }
  if (!answer->wait() || answer->status() == 500) {
    std::fprintf(stderr, "%s: %d %s\n", route, answer->status(), answer->body().c_str());
    std::abort();
  }
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  constexpr std::string_view words[] = {"model",
                                        "minimind",
                                        "messages",
                                        "role",
                                        "user",
                                        "assistant",
                                        "system",
                                        "tool",
                                        "content",
                                        "prompt",
                                        "stream",
                                        "options",
                                        "format",
                                        "json",
                                        "think",
                                        "tools",
                                        "tool_calls",
                                        "function",
                                        "name",
                                        "arguments",
                                        "parameters",
                                        "temperature",
                                        "num_predict",
                                        "num_ctx",
                                        "stop",
                                        "seed",
                                        "raw",
                                        "system",
                                        "keep_alive",
                                        "input_ids",
                                        "text",
                                        "n",
                                        "top_k",
                                        "top_p",
                                        "max_new_tokens",
                                        "tokens",
                                        "logprobs",
                                        "max_tokens",
                                        "best_of",
                                        "echo",
                                        "grammar",
                                        "sampling_params",
                                        "model_path",
                                        "type",
                                        "object",
                                        "json_schema",
                                        "response_format",
                                        "tool_choice",
                                        "guided_regex",
                                        "structured_outputs",
                                        "logit_bias",
                                        "images",
                                        "thinking",
                                        "with_pieces",
                                        "return_logprob",
                                        "stop_token_ids",
                                        "min_tokens",
                                        "input",
                                        "instructions",
                                        "previous_response_id",
                                        "call_id",
                                        "output",
                                        "return_token_ids",
                                        "return_tokens_as_token_ids",
                                        "prompt_logprobs",
                                        "tests/golden/v3-fp32/model.pth"};
  return mutate_json(data, size, max_size, seed, words, 1);
}
