#pragma once

#include <memory>

#include "runtime/chat/chat_json.h"
#include "tools/http/http.h"
#include "tools/openai/text_model.h"
#include "tools/serve/completion.h"
#include "tools/serve/response_request.h"

namespace minimind {

// Answers POST /v1/responses, as a whole or as a stream of typed events, and adds the response to the store.
// `model` must outlive the answer. Throws RequestError.
void start_response(const TextModel& model, const SubmitTexts& submit, ResponseRequest request,
                    const TakeSeeds& take_seeds, std::shared_ptr<ResponseStore> store,
                    std::shared_ptr<HttpAnswer> answer);

// Returns the answer to POST /v1/responses/input_tokens: how many tokens the prompt of the response has. Throws
// RequestError.
ChatJson response_tokens(const TextModel& model, const ResponseRequest& request);

}  // namespace minimind
