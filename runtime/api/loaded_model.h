#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "runtime/api/minimind.h"
#include "runtime/chat/chat_template.h"
#include "runtime/chat/session_file.h"
#include "runtime/engine/huge_page_arena.h"
#include "runtime/engine/pack.h"
#include "runtime/llm/llm.h"
#include "runtime/tokenizer/tokenizer.h"
#include "weights/checkpoint/open_checkpoint.h"

namespace minimind {

// A model with all that does not change while it runs: tokenizer, chat template and the options it was opened with.
class LoadedModel {
 public:
  // Throws as open_checkpoint(), load_model() and read_tokenizer() do.
  LoadedModel(const std::string& path, const minimind_model_options& options);

  const LLM& llm() const { return llm_; }
  const Config& config() const { return llm_.config; }
  std::size_t parameters() const { return parameters_; }
  const std::string& path() const { return path_; }
  const std::string& family() const { return family_; }
  const std::string& kv_type_name() const { return kv_type_name_; }
  const std::string& notes() const { return notes_; }

  // The tokenizer, which may be missing, and the chat template. They throw Failure then.
  const Tokenizer& tokenizer() const;
  const ChatTemplate& chat_template() const;

  // Identifies the weights for session files. Throws Failure unless opened with session_files.
  const ModelIdentity& identity() const;

  // Replaces the weights. No thread may use the model meanwhile, and no context may be used afterwards. Throws Error if
  // the weights are those of another shape, and as the constructor does; then nothing has changed.
  void reload(const std::string& path);
  void load_tensors(std::span<const minimind_tensor> tensors);

 private:
  LoadedModel(const Checkpoint& checkpoint, OpenOptions open_options, const minimind_model_options& options);
  void replace(const Checkpoint& checkpoint);
  void note_all(const Checkpoint& checkpoint);

  const std::string opened_;  // the path of the first weights
  std::string path_;
  OpenOptions open_options_;
  WeightType type_;
  Compute compute_;
  bool session_files_;
  HugePageArena memory_;  // of the model's matrices
  LLM llm_;
  std::size_t parameters_ = 0;
  std::string family_, kv_type_name_, notes_;
  std::optional<ModelIdentity> identity_;
};

}  // namespace minimind
