#include "tools/serve/absent_routes.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "weights/base/text.h"

namespace minimind {
namespace {

// Routes of other servers that this one cannot answer honestly, by their starts, and why.
struct AbsentRoute {
  std::string_view start, reason;
};
constexpr std::string_view no_embeddings =
    "a small model that continues texts has no embeddings that compare them; use a model that was trained for that";
constexpr std::string_view no_classes =
    "the model continues texts and sorts none into classes; guided_choice lets it choose";
constexpr std::string_view no_files = "the server keeps no files; send the text in the request";
constexpr std::string_view no_model_changes =
    "models are files of the server; start it with the checkpoint, or with a folder of them";
constexpr std::string_view no_abort = "a text ends when its client closes the connection";
constexpr std::string_view no_pause =
    "texts that run end with the weights they began with; /update_weights_from_disk needs no pause";
constexpr std::string_view no_release =
    "the memory of weights and cache is the server's as long as it runs; /flush_cache empties the cache";
constexpr std::string_view only_disk = "new weights are a checkpoint on disk, which /update_weights_from_disk takes";
constexpr std::string_view only_metrics = "GET /metrics has the numbers of texts that run and wait";
constexpr std::string_view loras_by_name = "a LoRA is part of a model's name, NAME:LORA, of a server of a folder";
constexpr std::string_view no_kobold =
    "the API is neither KoboldCpp's nor Lemonade's; POST /v1/completions continues a prompt";
constexpr AbsentRoute absent_routes[] = {
    {"/v1/embeddings", no_embeddings},
    {"/embedding", no_embeddings},
    {"/api/embed", no_embeddings},
    {"/v1/responses/compact", "the server compacts no conversations; send the part that the model must know"},
    {"/v1/responses/", "the id of a response starts with resp_"},
    {"/v1/conversations", "the server keeps responses, not conversations; continue one by previous_response_id"},
    {"/v1/chat/completions/", "the server keeps no chat completions; /v1/responses keeps what it answers"},
    {"/v1/rerank", no_embeddings},
    {"/rerank", no_embeddings},
    {"/v2/rerank", no_embeddings},
    {"/v1/score", no_embeddings},
    {"/score", no_embeddings},
    {"/v1/pooling", no_embeddings},
    {"/pooling", no_embeddings},
    {"/v1/classify", no_classes},
    {"/classify", no_classes},
    {"/v1/images", "the model reads and writes text, not images"},
    {"/v1/audio", "the model reads and writes text, not audio"},
    {"/v1/realtime", "the model reads and writes text, not audio"},
    {"/v1/videos", "the model reads and writes text, not videos"},
    {"/v1/moderations", "the model judges no texts"},
    {"/v1/evals", "the server judges no texts; tools such as lm_eval judge the model's by /v1/completions"},
    {"/v1/containers", "the server runs no programs"},
    {"/v1/files", no_files},
    {"/v1/uploads", no_files},
    {"/v1/vector_stores", no_files},
    {"/v1/batches", "the server keeps no files; `minimind batch` takes a file of requests"},
    {"/v1/fine", "the server trains no model"},  // fine_tuning, and fine-tunes before it
    {"/v1/edits", "the model continues texts; POST /v1/chat/completions answers an instruction"},
    {"/v1/tts", "the model reads and writes text, not audio"},
    {"/v1/agents", "the server keeps no agents; POST /v1/chat/completions answers a chat"},
    {"/v1/agent", "POST /v1/responses answers a request of this form"},  // Perplexity's
    {"/v2/chat", "the API is not Cohere's; POST /v1/chat/completions answers a chat in OpenAI's form"},
    {"/v1beta/", "the API is not Gemini's; POST /v1/chat/completions answers a chat in OpenAI's form"},
    {"/v1/assistants", "the server keeps no assistants; send the conversation in the request"},
    {"/v1/threads", "the server keeps no assistants; send the conversation in the request"},
    {"/api/pull", no_model_changes},
    {"/api/push", no_model_changes},
    {"/api/create", no_model_changes},
    {"/api/copy", no_model_changes},
    {"/api/delete", no_model_changes},
    {"/api/blobs", no_model_changes},
    {"/v1/messages/count_tokens", "the API is not Anthropic's; /tokenize with messages counts the tokens of a chat"},
    {"/v1/messages", "the API is not Anthropic's; POST /v1/chat/completions answers a chat in OpenAI's form"},
    // llama.cpp's
    {"/completion", "POST /v1/completions continues a prompt, with llama.cpp's parameters, too"},
    {"/props", "GET /v1/models has the context length and defaults of sampling, POST /apply-template renders a chat"},
    {"/slots", only_metrics},
    {"/v1/fim/", "the model continues texts and cannot fill in their middle; POST /v1/completions continues one"},
    {"/infill", "the model continues texts and cannot fill in their middle; POST /v1/completions continues one"},
    {"/lora-adapters", loras_by_name},
    // of KoboldCpp, Lemonade and text-generation-webui
    {"/api/v1/chat/", "POST /v1/chat/completions answers a chat in OpenAI's form"},
    {"/api/v1/", no_kobold},
    {"/api/extra/", no_kobold},
    {"/v1/internal/", "GET /v1/models lists the models, POST /tokenize and /detokenize encode and decode"},
    // of SGLang and vLLM
    {"/abort_request", no_abort},
    {"/pause_generation", no_pause},
    {"/continue_generation", no_pause},
    {"/release_memory_occupation", no_release},
    {"/resume_memory_occupation", no_release},
    {"/sleep", no_release},
    {"/wake_up", no_release},
    {"/update_weights_from_tensor", only_disk},
    {"/update_weights_from_distributed", only_disk},
    {"/init_weights_update_group", only_disk},
    {"/get_load", only_metrics},
    {"/v1/load_lora_adapter", loras_by_name},
    {"/v1/unload_lora_adapter", loras_by_name},
    {"/load", only_metrics},
    {"/encode", no_embeddings},
};

}  // namespace

std::string no_such_route(const std::string& path) {
  const std::string v1 = "/v1", without = path.starts_with(v1) ? path.substr(v1.size()) : path;
  const auto absent = std::ranges::find_if(absent_routes, [&](const AbsentRoute& route) {
    return without.starts_with(route.start) || (v1 + without).starts_with(route.start);
  });
  return fmt::format("there is no route {}{}{}", quote(path), absent == std::end(absent_routes) ? "" : ": ",
                     absent == std::end(absent_routes) ? "" : absent->reason);
}

}  // namespace minimind
