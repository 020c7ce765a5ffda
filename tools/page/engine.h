#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/chat/chat_json.h"
#include "runtime/generate/step_pace.h"
#include "runtime/llm/text_queue.h"
#include "tools/openai/request.h"
#include "tools/openai/text_model.h"

namespace minimind {

// Which checkpoint is to be read, and how.
struct PageModel {
  std::string path{};                // of a file or folder
  std::vector<std::string> loras{};  // paths
  std::string rope_scaling{};        // as --rope-scaling has it; empty: none
};

// Reads it from a JSON object with these fields. Throws Error.
PageModel read_page_model(std::string_view json);

// Returns the logits of all tokens, [tokens, vocab_size], of a checkpoint that needs no tokenizer. Throws Error.
std::vector<float> page_logits(const PageModel& model, std::span<const std::int32_t> tokens);

// The engine of the page that is one file: the models that it has, and the answers that they write. It answers what
// the chat page asks of a server. One thread calls it, and no call waits: between two steps, that thread hears what
// the page wants.
class PageEngine {
 public:
  PageEngine();

  // Loads a checkpoint, which is then a model of the page; it replaces one with the same name. Returns the name. Throws
  // Error if it cannot be read or has no tokenizer. Of the other models the first stays, and the last one if there is
  // memory for it: a comparison has two.
  std::string load(const PageModel& model);

  // Returns the body of GET /v1/models.
  std::string models() const;

  // Starts the answer to a POST, such as to "v1/chat/completions". The number is the caller's.
  void ask(int answer, std::string_view path, std::string_view body);

  // Nobody waits for the answer any more.
  void stop(int answer);

  // Runs a step of each model that has texts. Returns false if there are none.
  bool step();

  // Returns what became of the answers since the last call, a JSON list:
  //   [answer, "send", status, body]    a whole answer, or
  //   [answer, "start"], [answer, "write", piece], ..., [answer, "finish"]
  std::string take_events();

 private:
  class Answer;
  struct Loaded {
    Loaded(const GenerationArguments& arguments, const std::string& chat_template);

    TextModel model;
    TextQueue queue;
    PromptLimit prompt_limit;
  };
  Loaded& named(const std::string& name);
  bool close_oldest();
  static void end_texts(Loaded& loaded, const char* reason);
  static void step(Loaded& loaded);

  RequestDefaults defaults_;
  std::vector<std::unique_ptr<Loaded>> models_;  // in the order in which they were loaded
  std::vector<std::weak_ptr<Answer>> answers_;   // that are not finished
  std::shared_ptr<ChatJson> events_;
};

}  // namespace minimind
