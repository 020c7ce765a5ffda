#pragma once

#include <memory>

#include "tools/http/http.h"
#include "tools/openai/text_model.h"
#include "tools/serve/completion.h"
#include "tools/serve/engine_thread.h"
#include "tools/serve/response_request.h"

namespace minimind {

// Answers POST /v1/responses, as a whole or as a stream of typed events, and adds the conversation to the store.
// `model` must outlive the answer. Throws RequestError.
void start_response(const TextModel& model, EngineThread& engine, ResponseRequest request, const TakeSeeds& take_seeds,
                    std::shared_ptr<ResponseStore> store, std::shared_ptr<HttpAnswer> answer);

}  // namespace minimind
