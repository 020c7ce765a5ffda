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
    {"/v1/moderations", "the model judges no texts"},
    {"/v1/files", no_files},
    {"/v1/uploads", no_files},
    {"/v1/vector_stores", no_files},
    {"/v1/batches", "the server keeps no files; `minimind batch` takes a file of requests"},
    {"/v1/fine_tuning", "the server trains no model"},
    {"/v1/assistants", "the server keeps no assistants; send the conversation in the request"},
    {"/v1/threads", "the server keeps no assistants; send the conversation in the request"},
    {"/api/pull", no_model_changes},
    {"/api/push", no_model_changes},
    {"/api/create", no_model_changes},
    {"/api/copy", no_model_changes},
    {"/api/delete", no_model_changes},
    {"/api/blobs", no_model_changes},
};

}  // namespace

std::string no_such_route(const std::string& path) {
  const auto absent = std::ranges::find_if(absent_routes, [&](const AbsentRoute& route) {
    return path.starts_with(route.start) || ("/v1" + path).starts_with(route.start);
  });
  return fmt::format("there is no route {}{}{}", quote(path), absent == std::end(absent_routes) ? "" : ": ",
                     absent == std::end(absent_routes) ? "" : absent->reason);
}

}  // namespace minimind
