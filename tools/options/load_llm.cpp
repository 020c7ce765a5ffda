#include "tools/options/load_llm.h"

#include <algorithm>
#include <future>
#include <system_error>
#include <thread>
#include <utility>

#include "runtime/engine/load_model.h"
#include "runtime/tokenizer/files.h"
#include "tools/options/choose_tokenizer.h"
#include "tools/options/config_fields.h"
#include "tools/terminal/note.h"
#include "tools/terminal/progress.h"
#include "weights/base/parallel.h"

namespace minimind {

namespace {

struct MadeTokenizer {
  TokenizerData data;
  Tokenizer tokenizer{data};
};

// Runs a task on a thread of its own, or at once if there is none: std::async of libc++ waits forever then.
std::jthread start(std::packaged_task<MadeTokenizer()>& task) {
  try {
    const HeldSignals held;
    return std::jthread(std::ref(task));
  } catch (const std::system_error&) {
    task();
    return {};
  }
}

}  // namespace

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
  note(checkpoint_notes(checkpoint));
}

void print_template_note(const std::string& source, Family family) {
  if (source.empty()) return note("chat template of family {}: the checkpoint has none", name_of(family));
  note("chat template from {}", source);
}

LLM load_llm(const CheckpointOptions& checkpoint_options, const RunOptions& run,
             const std::function<void(const Checkpoint&, LLM&)>& use) {
  const WeightType type = run.weight_type();
  const Checkpoint checkpoint =
      open_checkpoint(model_path(checkpoint_options.model), checkpoint_options.open_options());
  HugePageArena memory;
  LLM llm = load_llm(checkpoint, {.type = type, .compute = run.compute, .kv_type = run.kv_type, .threads = run.threads},
                     memory);
  if (!run.quiet) print_notes(checkpoint, checkpoint_options.model);
  if (use) use(checkpoint, llm);
  if (!run.quiet) {
    note(llm.facts());
    print_compute_note(llm.kernels);
    if (!run.kv_type && llm.kv_type != KvType::f32) {
      note("the KV cache is {}; --kv-type f32 keeps it exact", name_of(llm.kv_type));
    }
  }
  return llm;
}

LLM load_llm(const GenerationArguments& arguments, const TextParts& parts,
             const std::function<void(const Checkpoint&)>& use) {
  const std::string& model = arguments.checkpoint.model;
  // A tokenizer takes as long to read and to make as a small model.
  std::packaged_task<MadeTokenizer()> read(
      [&] { return MadeTokenizer{read_tokenizer(require_tokenizer_path(arguments.tokenizer, model))}; });
  std::future<MadeTokenizer> tokenizer = read.get_future();
  std::jthread reader;
  if (parts.chat_template || parts.requires_tokenizer) reader = start(read);
  const auto complete = [&](const Checkpoint& checkpoint, LLM& llm) {
    if (use) use(checkpoint);
    if (arguments.context) llm.positions = *arguments.context;
    if (parts.chat_template) {
      MadeTokenizer made = tokenizer.get();
      llm.read_text_parts(made.data, std::move(made.tokenizer), *parts.chat_template);
    } else if (parts.requires_tokenizer) {
      llm.tokenizer = tokenizer.get().tokenizer;
    } else {
      llm.tokenizer = optional_tokenizer(arguments.tokenizer, model);
    }
  };
  LLM llm = load_llm(arguments.checkpoint, arguments.run, complete);
  if (parts.chat_template && !arguments.run.quiet) print_template_note(llm.template_source, llm.config.family);
  return llm;
}

Model load_new_weights(const LLM& running, const std::string& path, const CheckpointOptions& checkpoint_options,
                       const RunOptions& run, const std::function<void(const Checkpoint&)>& use) {
  OpenOptions options = checkpoint_options.open_options();
  options.running = &running.config;
  const Checkpoint checkpoint = open_checkpoint(model_path(path), options);
  HugePageArena memory;  // not that of the running model
  Model model = load_replacement(running.config, checkpoint, run.weight_type(), running.threads, run.compute, memory);
  if (use) use(checkpoint);
  return model;
}

void print_assumed_end(const LLM& llm) {
  if (!llm.eos_was_assumed || (llm.tokenizer && llm.tokenizer->eos_id())) return;
  note("assumed that token {} ends the text; --ignore-eos continues past it", llm.config.eos_token_id.front());
}

void for_each_logits(const LLM& llm, std::span<const std::int32_t> tokens, const std::string& label,
                     const std::function<void(std::size_t, Matrix<const float>)>& use) {
  const Config& config = llm.config;
  check_tokens(tokens, config.vocab_size);
  Context context = llm.context(tokens.size());
  Forward forward = llm.forward(tokens.size(), tokens.size());
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
