#pragma once

#include <memory>

#include "runtime/chat/chat_json.h"
#include "tools/http/http.h"
#include "tools/openai/text_model.h"
#include "tools/serve/completion.h"

namespace minimind {

// Answers SGLang's /generate, which MiniMind's trainer/rollout_engine.py calls: texts of prompts that are ids, with the
// ids of their tokens and, with return_logprob, log-probabilities, of the prompt from logprob_start_len on. `body` has
// input_ids (a list of ids, or a list of such lists) or text (one or a list), sampling_params with SGLang's names and
// defaults, return_logprob, logprob_start_len, top_logprobs_num, return_text_in_logprobs, rid and stream, whose events
// have all of a text so far. Throws RequestError.
void start_rollout(const TextModel& model, const SubmitTexts& submit, const ChatJson& body, const TakeSeeds& take_seeds,
                   const TakeHints& take_hints, std::shared_ptr<HttpAnswer> answer);

}  // namespace minimind
