#pragma once

#include <chrono>
#include <ctime>
#include <string>
#include <vector>

#include "runtime/chat/chat_json.h"
#include "tools/openai/request.h"
#include "tools/openai/text_model.h"
#include "tools/serve/model_shelf.h"

namespace minimind {

// What Ollama's routes say of the models, and of the name of one.

// The name of the model in a request's body, in the field `model` or its older name `name`, without Ollama's tag
// "latest".
std::string ollama_model_name(const ChatJson& body);

// Throws the RequestError of a body without one.
[[noreturn]] void fail_without_model();

// The answer to GET /api/tags; `started` is the time of a model that has none.
ChatJson ollama_tags(const std::vector<ModelShelf::Listed>& models, std::time_t started);

// The answer to GET /api/ps: the models that are loaded.
ChatJson ollama_running(const std::vector<ModelShelf::Listed>& models, std::time_t started);

// The answer to POST /api/show. `defaults` are the parameters of requests that leave them out. Throws RequestError for
// a body with other fields than the model's name and `verbose`.
ChatJson ollama_show(const ChatJson& body, const TextModel& model, const RequestDefaults& defaults,
                     std::time_t modified);

// Returns a time as Ollama writes it, in UTC.
std::string ollama_time(std::chrono::system_clock::time_point time);

}  // namespace minimind
