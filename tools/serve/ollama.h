#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runtime/chat/chat_json.h"
#include "tools/http/http.h"
#include "tools/openai/request.h"
#include "tools/openai/request_error.h"
#include "tools/openai/text_model.h"
#include "tools/serve/completion.h"

namespace minimind {

// Ollama's routes, for programs that know no other API. Errors are {"error": MESSAGE}.

// Which of its two routes for texts a request is for.
enum class OllamaRoute { chat, generate };

// Answers POST /api/chat or /api/generate, in lines of JSON unless `stream` is false. `model` must outlive the answer.
// Throws RequestError for a field that would change the text and is not supported, naming it as Ollama does, and
// LongWork before it takes seeds.
void start_ollama(OllamaRoute route, const TextModel& model, const SubmitTexts& submit, const ChatJson& body,
                  const RequestDefaults& defaults, const TakeSeeds& take_seeds, const TakeHints& take_hints,
                  std::shared_ptr<HttpAnswer> answer);

// Whether a request has no text, but `keep_alive` 0: the model is to leave the memory.
bool asks_to_unload(OllamaRoute route, const ChatJson& body);

// The answer to such a request.
ChatJson ollama_unloaded(OllamaRoute route, const ChatJson& body);

// Whether a path is of Ollama's API, known or not.
inline bool is_ollamas(std::string_view path) {
  return path.starts_with("/api/");
}

std::string ollama_error_body(const RequestError& error);

}  // namespace minimind
