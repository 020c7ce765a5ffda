#include "runtime/api/loaded_model.h"

#include <fmt/core.h>
#include <pthread.h>

#include <algorithm>
#include <new>
#include <utility>

#include "runtime/api/failures.h"
#include "runtime/engine/load_model.h"
#include "runtime/engine/thread_team.h"
#include "runtime/tokenizer/files.h"
#include "weights/base/error.h"
#include "weights/base/text.h"
#include "weights/io/input_file.h"
#include "weights/tensor/weight_types.h"

namespace minimind {
namespace {

// A forked child has no thread of the teams that its parent keeps, and would wait for them: they are ended before.
void end_teams_before_forks() {
  static const int failed = pthread_atfork(end_teams, nullptr, nullptr);
  if (failed != 0) throw std::bad_alloc();
}

std::string text_or_empty(const char* text) {
  return text ? text : "";
}

Compute compute_of(const minimind_model_options& given) {
  return given.compute ? parse_compute(given.compute) : Compute::f32;
}

WeightType parse_type(const char* name) {
  return name ? parse_weight_type(name, WeightsAre::in_memory) : WeightType();
}

OpenOptions open_options_of(const minimind_model_options& given) {
  OpenOptions options;
  if (given.heads > 0) options.overrides.heads = given.heads;
  if (given.kv_heads > 0) options.overrides.kv_heads = given.kv_heads;
  if (given.experts_per_token > 0) options.overrides.experts_per_token = given.experts_per_token;
  if (given.rope_scaling) options.overrides.yarn = is_yarn(given.rope_scaling);
  if (given.config) options.config_path = given.config;
  for (std::size_t i = 0; i < given.lora_count; ++i) options.loras.push_back(parse_lora_argument(given.loras[i]));
  return options;
}

LLMOptions llm_options_of(const minimind_model_options& given) {
  LLMOptions options{.type = parse_type(given.type), .compute = compute_of(given)};
  if (given.kv_type) options.kv_type = parse_kv_type(given.kv_type);
  if (given.threads > 0) options.threads = given.threads;
  if (given.context_length > 0) options.positions = given.context_length;
  return options;
}

StoredTensor stored_tensor_of(const minimind_tensor& given) {
  const std::string name = text_or_empty(given.name), type = text_or_empty(given.type);
  StoredTensor tensor;
  if (type != "f32" && type != "f16" && type != "bf16") {
    throw UsageError(fmt::format("{}: its type is {}, expected f32, f16 or bf16", quote(name), quote(type)));
  }
  tensor.dtype = parse_weight_type(type);
  std::size_t bytes = type == "f32" ? 4 : 2;
  for (std::size_t i = 0; i < given.rank; ++i) {
    if (__builtin_mul_overflow(bytes, given.shape[i], &bytes)) {
      throw UsageError(fmt::format("{}: its shape has more values than memory can have", quote(name)));
    }
    tensor.shape.push_back(given.shape[i]);
  }
  if (bytes != given.bytes) {
    throw UsageError(fmt::format("{}: has {} bytes, expected {} for {} of shape {}", quote(name), given.bytes, bytes,
                                 type, shape_text(tensor.shape)));
  }
  // The caller keeps the data until it is packed.
  tensor.data = StoredBytes({static_cast<const std::byte*>(given.data), given.bytes}, nullptr);
  tensor.file = "memory";
  return tensor;
}

}  // namespace

LoadedModel::LoadedModel(const std::string& path, const minimind_model_options& options)
    : LoadedModel(open_checkpoint(path, open_options_of(options)), open_options_of(options), options) {}

LoadedModel::LoadedModel(const Checkpoint& checkpoint, OpenOptions open_options, const minimind_model_options& options)
    : opened_(checkpoint.path),
      path_(checkpoint.path),
      open_options_(std::move(open_options)),
      type_(parse_type(options.type)),
      compute_(compute_of(options)),
      session_files_(options.session_files != 0),
      llm_(load_llm(checkpoint, llm_options_of(options), memory_)) {
  end_teams_before_forks();
  kv_type_name_ = name_of(llm_.kv_type);
  family_ = name_of(config().family);
  parameters_ = parameter_count(checkpoint);
  const auto found = options.tokenizer ? std::optional<std::string>(options.tokenizer) : find_tokenizer(path_);
  if (found) {
    // A library does not wait for a pipe, as a command does.
    if (options.chat_template) open_input(options.chat_template);
    const TokenizerData data = read_tokenizer(*found);
    llm_.read_text_parts(data, Tokenizer(data), text_or_empty(options.chat_template));
  }
  if (session_files_) identity_ = identify(checkpoint, type_, compute_);
  note_all(checkpoint);
}

void LoadedModel::note_all(const Checkpoint& checkpoint) {
  notes_.clear();
  const auto add = [this](const std::string& line) { notes_ += (notes_.empty() ? "" : "\n") + line; };
  for (const Fact& fact : checkpoint_notes(checkpoint)) add(fact.english());
  for (const Fact& fact : llm_.facts()) add(fact.english());
  if (!llm_.tokenizer) add(fmt::format("{}: has no tokenizer", path_));
}

const Tokenizer& LoadedModel::tokenizer() const {
  if (llm_.tokenizer) return *llm_.tokenizer;
  throw Failure(MINIMIND_NO_TOKENIZER,
                fmt::format("{}: has no tokenizer, expected a tokenizer.json in its folder, or in model/ or "
                            "model/minimind_tokenizer/ there or one folder up; name one as the tokenizer",
                            opened_));
}

const ChatTemplate& LoadedModel::chat_template() const {
  tokenizer();
  return *llm_.chat_template;
}

const ModelIdentity& LoadedModel::identity() const {
  if (identity_) return *identity_;
  throw Failure(MINIMIND_BAD_ARGUMENT, "session files need the hash of the weights; open the model with session_files");
}

void LoadedModel::reload(const std::string& path) {
  OpenOptions options = open_options_;
  options.running = &config();
  replace(open_checkpoint(path, options));
}

void LoadedModel::load_tensors(std::span<const minimind_tensor> tensors) {
  StoredTensors stored;
  for (const minimind_tensor& tensor : tensors) {
    if (!stored.emplace(text_or_empty(tensor.name), stored_tensor_of(tensor)).second) {
      throw UsageError(fmt::format("{}: is given twice, expected once", quote(text_or_empty(tensor.name))));
    }
  }
  replace(checkpoint_of(std::move(stored), llm_.config, "the tensors in memory"));
}

void LoadedModel::replace(const Checkpoint& checkpoint) {
  std::optional<ModelIdentity> identity;
  if (session_files_) identity = identify(checkpoint, type_, compute_);
  // A file may turn out to be unreadable when a part of it is packed already: the running model stays as it is then.
  const auto& tensors = checkpoint.tensors;
  const bool in_memory =
      std::none_of(tensors.begin(), tensors.end(), [](const auto& t) { return t.second.data.file(); });
  HugePageArena memory = in_memory ? memory_.again() : HugePageArena();
  *llm_.model = load_replacement(config(), checkpoint, type_, llm_.threads, compute_, memory);
  memory_ = std::move(memory);
  memory_.free_unused();
  identity_ = std::move(identity);
  path_ = checkpoint.path;
  family_ = name_of(llm_.config.family);
  parameters_ = parameter_count(checkpoint);
  note_all(checkpoint);
}

}  // namespace minimind
