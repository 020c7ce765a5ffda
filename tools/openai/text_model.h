#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/chat/answer_parser.h"
#include "runtime/chat/message.h"
#include "runtime/constraint/grammar_constraint.h"
#include "runtime/llm/text_queue.h"
#include "runtime/tokenizer/tokenizer.h"
#include "tools/openai/request.h"
#include "tools/options/generation_options.h"
#include "tools/options/load_llm.h"

namespace minimind {

// What all texts of a request may take together, with the copies for n and best_of.
inline constexpr std::size_t most_copied_bytes = std::size_t{256} << 20;

// How many log-probabilities all texts of a request may have together, alternatives included. Each of them takes up to
// 300 bytes until the answer is sent.
inline constexpr std::size_t most_log_probabilities = std::size_t{1} << 21;

// A text to generate, and how it becomes an answer.
struct TextTask : GenerationTask {
  ThinkState thinks = ThinkState::none;
  std::string opening{};        // the start of the answer, which the prompt ends with
  bool plain = false;           // the answer has neither thinking nor calls
  bool forced = false;          // the answer is calls alone
  std::string only_function{};  // of a forced answer, that all calls are of; empty if there are several
};

// About the bytes that it consists of, not what its text will take.
std::size_t bytes_of(const GenerationTask& task);

// What a checkpoint is, for people.
struct CheckpointFacts {
  std::string format{};        // as Checkpoint has it
  std::string type{};          // of most of its weights in memory, such as "f16"
  std::size_t parameters = 0;  // their number
  std::size_t bytes = 0;       // of the weights in memory, about
};

// A model with everything that requests for its texts need. Any number of threads may use it.
class TextModel {
 public:
  // `name` is the only one of the model, if not empty. Prints notes to stderr unless the options say quiet.
  TextModel(const GenerationArguments& arguments, const std::string& chat_template, const std::string& name = "");

  const LLM& llm() const { return llm_; }
  const Tokenizer& tokenizer() const { return *llm_.tokenizer; }

  // The names that requests may use: its own, that of the file without and with its extension, its path,
  // "minimind".
  const std::vector<std::string>& names() const { return names_; }
  bool has_name(const std::string& name) const { return std::ranges::count(names_, name) > 0; }
  // Returns the name that an answer has: that of the request if it is one of the model's, else the model's own.
  const std::string& name_for(const std::string& asked) const { return has_name(asked) ? asked : names_.front(); }

  const CheckpointFacts& facts() const { return facts_; }

  // Returns true if the setting reaches the prompt of a chat: that the model thinks, or tools.
  bool minds_thinking() const;
  bool minds_tools() const;

  // The texts of a request, best_of for each prompt, in order. A text without a seed of the request has `seed` plus its
  // index. Throws RequestError if a prompt does not fit the context.
  std::vector<TextTask> tasks(const Request& request, std::uint64_t seed, std::time_t now) const;

  // Loads the weights of another checkpoint with the options of this model. Throws Error if it cannot be read or has
  // another shape.
  Model load_weights_of(const std::string& path) const;
  // Replaces the weights. No thread may start to run the model meanwhile; texts that run may go on with the old ones.
  void replace_weights(std::shared_ptr<Model> model) { llm_.model = std::move(model); }

  // The prompt of a chat, marked as by ChatTemplate::render(). A continued answer is at its end.
  MarkedText chat_prompt(const Request& request, std::time_t now) const;

 private:
  TextTask task_of(const Request& request, const TextPrompt* prompt, std::time_t now) const;
  void set_prompt(TextTask& task, const Request& request, const TextPrompt* prompt, std::time_t now) const;
  GrammarMarks call_marks(bool is_free) const;
  MakeConstraint constraint_of(const Request& request) const;

  CheckpointOptions checkpoint_options_;
  RunOptions run_options_;
  CheckpointFacts facts_;
  LLM llm_;
  std::vector<std::string> names_;
};

// Returns the memory that the weights of a model would take, about, without loading it. Throws Error if it cannot be
// read.
std::size_t weight_bytes_of(const GenerationArguments& arguments);

}  // namespace minimind
