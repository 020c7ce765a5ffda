#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "runtime/api/minimind.h"
#include "tests/support/golden_engine.h"

namespace minimind {

struct Close {
  void operator()(minimind_model* model) const { minimind_close(model); }
  void operator()(minimind_session* session) const { minimind_session_close(session); }
  void operator()(minimind_generation* generation) const { minimind_release(generation); }
  void operator()(minimind_recording* recording) const { minimind_recording_close(recording); }
  void operator()(minimind_vocabulary* vocabulary) const { minimind_vocabulary_close(vocabulary); }
  void operator()(minimind_grammar* grammar) const { minimind_grammar_close(grammar); }
  void operator()(minimind_matcher* matcher) const { minimind_matcher_close(matcher); }
};
using ModelHandle = std::unique_ptr<minimind_model, Close>;
using SessionHandle = std::unique_ptr<minimind_session, Close>;
using GenerationHandle = std::unique_ptr<minimind_generation, Close>;
using RecordingHandle = std::unique_ptr<minimind_recording, Close>;

inline minimind_model_options options() {
  minimind_model_options options;
  minimind_default_model_options(&options, sizeof options);
  return options;
}

inline ModelHandle open_model(const std::string& path, const minimind_model_options& given = options()) {
  minimind_model* model = nullptr;
  minimind_error error{};
  EXPECT_EQ(minimind_open(path.c_str(), &given, &model, &error), MINIMIND_OK) << error.message;
  return ModelHandle(model);
}

inline SessionHandle open_session_of(const ModelHandle& model, std::size_t capacity) {
  minimind_session* session = nullptr;
  EXPECT_EQ(minimind_session_open(model.get(), capacity, &session), MINIMIND_OK);
  return SessionHandle(session);
}

// A request for tokens by the largest logit.
inline minimind_request greedy_request(const Tokens& prompt, std::size_t max_tokens) {
  minimind_request request;
  minimind_default_request(&request, sizeof request);
  request.ids = prompt.data();
  request.id_count = prompt.size();
  request.max_tokens = max_tokens;
  request.temperature = 0;
  request.ignore_eos = 1;
  return request;
}

inline GenerationHandle submit(const ModelHandle& model, const minimind_request& request) {
  minimind_generation* generation = nullptr;
  EXPECT_EQ(minimind_submit(model.get(), &request, &generation), MINIMIND_OK) << minimind_model_error(model.get());
  return GenerationHandle(generation);
}

// All that a text wrote.
struct Written {
  Tokens ids;
  std::string text;
  std::vector<double> log_probabilities;
  std::vector<std::size_t> weights;
  minimind_finish finish = MINIMIND_RUNNING;
  int conforms = 0;
  std::size_t prompt_tokens_reused = 0;
};

inline void poll_into(Written& written, const GenerationHandle& generation) {
  minimind_output output;
  output.size = sizeof output;
  ASSERT_EQ(minimind_poll(generation.get(), &output), MINIMIND_OK) << minimind_generation_error(generation.get());
  written.ids.insert(written.ids.end(), output.ids, output.ids + output.id_count);
  written.weights.insert(written.weights.end(), output.weights, output.weights + output.id_count);
  written.text.append(output.text, output.text_size);
  if (output.log_probabilities) {
    written.log_probabilities.insert(written.log_probabilities.end(), output.log_probabilities,
                                     output.log_probabilities + output.id_count);
  }
  written.finish = output.finish;
  written.conforms = output.conforms;
  written.prompt_tokens_reused = output.prompt_tokens_reused;
}

inline std::vector<Written> run_all(const ModelHandle& model, const std::vector<GenerationHandle>& texts) {
  std::vector<Written> written(texts.size());
  std::size_t left = texts.size();
  while (left > 0) {
    EXPECT_EQ(minimind_step(model.get(), &left), MINIMIND_OK) << minimind_model_error(model.get());
    for (std::size_t i = 0; i < texts.size(); ++i) poll_into(written[i], texts[i]);
  }
  return written;
}

inline Written run_one(const ModelHandle& model, const minimind_request& request) {
  std::vector<GenerationHandle> texts;
  texts.push_back(submit(model, request));
  return run_all(model, texts).front();
}

inline std::vector<float> logits_of(const ModelHandle& model, const Tokens& ids, std::size_t vocab) {
  std::vector<float> logits(ids.size() * vocab);
  EXPECT_EQ(minimind_logits(model.get(), ids.data(), ids.size(), logits.data(), logits.size(), nullptr, nullptr),
            MINIMIND_OK)
      << minimind_model_error(model.get());
  return logits;
}

}  // namespace minimind
