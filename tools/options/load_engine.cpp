#include "tools/options/load_engine.h"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

#include "runtime/kernels/instruction_sets.h"
#include "tools/options/config_fields.h"
#include "tools/terminal/note.h"
#include "tools/terminal/progress.h"
#include "weights/io/error.h"

namespace minimind {

namespace {

const kernels::Table& choose_f32_kernels() {
  try {
    return kernels::choose();
  } catch (const std::runtime_error& error) {
    throw UsageError(error.what());
  }
}

}  // namespace

const kernels::Table& choose_kernels(Compute compute) {
  const kernels::Table& kernels = choose_f32_kernels();
  if (compute == Compute::f32) return kernels;
  if (const kernels::Table* const with_bf16 = kernels::with_bf16(kernels)) return *with_bf16;
  if (kernels::runnable_bf16().count > 0) {
    throw UsageError(fmt::format("--compute bf16: the kernels are {}, expected {}; unset MINIMIND_ISA", kernels.name,
                                 kernels::runnable().tables[0]->name));
  }
  throw UsageError(
      "--compute bf16: the processor has no products of bf16, expected AVX512_BF16 or AMX-BF16; use --compute f32");
}

void print_compute_note(const kernels::Table& kernels) {
  if (kernels.bf16) note("{} multiplies bf16: activations and f16 weights are rounded to bf16", kernels.bf16->name);
}

void print_notes(const Checkpoint& checkpoint, const std::string& given) {
  if (!given.empty() && given != checkpoint.path) note("{}: assumed its only checkpoint, {}", given, checkpoint.path);
  note("{}: {}, {:.2f} M parameters, {}", checkpoint.path, name_of(checkpoint.config.family),
       1e-6 * static_cast<double>(parameter_count(checkpoint)), stored_types(checkpoint));
  if (const std::string assumed = assumptions(checkpoint); !assumed.empty()) {
    note("assumed {}", assumed);
  }
  for (const std::string& line : checkpoint_notes(checkpoint)) note("{}", line);
}

Engine load_engine(const CheckpointOptions& checkpoint_options, const RunOptions& run,
                   const std::function<void(const Checkpoint&)>& use) {
  const kernels::Table& kernels = choose_kernels(run.compute);
  const WeightType type = run.weight_type();
  const Checkpoint checkpoint =
      open_checkpoint(model_path(checkpoint_options.model), checkpoint_options.open_options());
  const std::size_t threads = run.threads.value_or(suitable_threads(checkpoint));
  const bool eos_was_assumed = checkpoint.sources.at("eos_token_id").kind == ConfigSource::Kind::assumed;
  Model model = load_model(checkpoint, type, threads, run.compute);
  if (use) use(checkpoint);
  const KvType kv_type = run.kv_type.value_or(suitable_kv_type(model));
  Engine engine{std::move(model), kernels, threads, kv_type, eos_was_assumed};
  if (!run.quiet) {
    print_notes(checkpoint, checkpoint_options.model);
    for (const std::string& tensor : engine.model.type_fallbacks) note("kept {}", translated_sentence(tensor));
    print_compute_note(kernels);
    if (!run.kv_type && kv_type != KvType::f32) {
      note("the KV cache is {}; --kv-type f32 keeps it exact", name_of(kv_type));
    }
  }
  return engine;
}

Model load_new_weights(const Engine& running, const std::string& path, const CheckpointOptions& checkpoint_options,
                       const RunOptions& run, const std::function<void(const Checkpoint&)>& use) {
  const Checkpoint checkpoint = open_checkpoint(model_path(path), checkpoint_options.open_options());
  HugePageArena memory;  // not that of the running model
  Model model = load_replacement(running.model, checkpoint, run.weight_type(), running.threads, run.compute, memory);
  if (use) use(checkpoint);
  return model;
}

void for_each_logits(const Engine& engine, std::span<const std::int32_t> tokens, const std::string& label,
                     const std::function<void(std::size_t, Matrix<const float>)>& use) {
  const Config& config = engine.model.config;
  check_tokens(tokens, config.vocab_size);
  Context context = engine.context(tokens.size());
  Forward forward = engine.forward(tokens.size(), tokens.size());
  std::vector<float> storage(forward.max_tokens() * config.vocab_size);
  Progress progress(std::string(translated(label)), tokens.size(), ProgressUnit::tokens);
  for (std::size_t done = 0; done < tokens.size();) {
    const std::size_t count = std::min(forward.max_tokens(), tokens.size() - done);
    const Matrix<float> logits{storage.data(), count, config.vocab_size};
    forward.run(context, tokens.subspan(done, count), logits);
    use(done, as_const(logits));
    done += count;
    progress.show(done);
  }
}

}  // namespace minimind
