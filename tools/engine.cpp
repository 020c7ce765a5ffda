#include "tools/engine.h"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

#include "runtime/generate.h"
#include "tools/config_fields.h"
#include "tools/progress.h"
#include "weights/error.h"

namespace minimind {
namespace {

const kernels::Table& choose_kernels() {
  try {
    return kernels::choose();
  } catch (const std::runtime_error& error) {
    throw UsageError(error.what());
  }
}

void print_notes(const Checkpoint& checkpoint, const Model& model) {
  fmt::print(stderr, "minimind: {}: {}, {:.2f} M parameters, {}\n", checkpoint.path, name_of(checkpoint.config.family),
             1e-6 * static_cast<double>(parameter_count(checkpoint)), stored_types(checkpoint));
  if (const std::string assumed = assumptions(checkpoint); !assumed.empty()) {
    fmt::print(stderr, "minimind: assumed {}\n", assumed);
  }
  if (!checkpoint.lora_changed.empty()) {
    fmt::print(stderr, "minimind: LoRA added to {} tensors, from {} on, which are held as f32\n",
               checkpoint.lora_changed.size(), checkpoint.lora_changed.front());
  }
  for (const std::string& tensor : model.held_otherwise) fmt::print(stderr, "minimind: held {}\n", tensor);
}

}  // namespace

Engine load_engine(const CheckpointOptions& checkpoint_options, const RunOptions& run) {
  const kernels::Table& kernels = choose_kernels();
  const WeightType type = run.weight_type();
  const std::size_t threads = run.thread_count();
  const Checkpoint checkpoint =
      open_checkpoint(model_path(checkpoint_options.model), checkpoint_options.open_options());
  const bool eos_was_assumed = checkpoint.sources.at("eos_token_id").starts_with("assumed");
  Engine engine{load_model(checkpoint, type, threads), kernels, threads, eos_was_assumed};
  if (!run.quiet) print_notes(checkpoint, engine.model);
  return engine;
}

void for_each_logits(const Engine& engine, std::span<const std::int32_t> tokens, const std::string& label,
                     const std::function<void(std::size_t, Matrix<const float>)>& use) {
  const Config& config = engine.model.config;
  check_tokens(tokens, config.vocab_size);
  KvCache cache(config, tokens.size());
  Forward forward(engine.model, engine.kernels, engine.threads, std::min(batch_tokens, tokens.size()), tokens.size());
  std::vector<float> storage(forward.max_tokens() * config.vocab_size);
  Progress progress(label, tokens.size());
  for (std::size_t done = 0; done < tokens.size();) {
    const std::size_t count = std::min(forward.max_tokens(), tokens.size() - done);
    const Matrix<float> logits{storage.data(), count, config.vocab_size};
    forward.run(tokens.subspan(done, count), cache, logits);
    use(done, as_const(logits));
    done += count;
    progress.show(done);
  }
}

}  // namespace minimind
