#pragma once

#include <memory>

#include "runtime/chat/chat_json.h"
#include "tools/http/http.h"
#include "tools/openai/text_model.h"
#include "tools/serve/completion.h"

namespace minimind {

// The routes of Hugging Face's text-generation-inference, which differ in the form of the answer.
enum class TextGenerationRoute { root, generate, generate_stream };

// Answers them: a text after `inputs`, with `parameters` of its names and defaults, of which no step of sampling is on,
// and `stream`. A whole answer has generated_text, at the root in a list, and with `details` the tokens; a stream has
// an event for each token, the last with both. Throws RequestError.
void start_text_generation(TextGenerationRoute route, const TextModel& model, const SubmitTexts& submit,
                           const ChatJson& body, const TakeSeeds& take_seeds, std::shared_ptr<HttpAnswer> answer);

}  // namespace minimind
