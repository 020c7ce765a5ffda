#include "runtime/api/loaded_model.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "runtime/api/failures.h"
#include "runtime/chat/conversation_prompt.h"
#include "runtime/engine/thread_team.h"
#include "runtime/generate/generate.h"
#include "runtime/kernels/instruction_sets.h"
#include "runtime/tokenizer/files.h"
#include "runtime/tokenizer/tokenizer_data.h"
#include "runtime/tokenizer/tokenizer_generation.h"
#include "weights/io/error.h"
#include "weights/io/quote.h"
#include "weights/io/text_file.h"
#include "weights/tensor/weight_types.h"

namespace minimind {
namespace {

std::string text_or_empty(const char* text) {
  return text ? text : "";
}

Compute parse_compute(const char* given) {
  const std::string name = given ? given : "f32";
  if (name == "f32") return Compute::f32;
  if (name == "bf16") return Compute::bf16;
  throw UsageError(fmt::format("compute is {}, expected f32 or bf16", quote(name)));
}

WeightType parse_type(const char* name) {
  return name ? parse_weight_type(name) : WeightType();
}

KvType parse_kv_type(const std::string& name) {
  for (const KvType type : kv_types) {
    if (name == minimind::name_of(type)) return type;
  }
  throw UsageError(fmt::format("kv_type is {}, expected f32, f16 or q8_0", quote(name)));
}

bool is_yarn(const std::string& scaling) {
  if (scaling == "yarn" || scaling == "none") return scaling == "yarn";
  throw UsageError(fmt::format("rope_scaling is {}, expected none or yarn", quote(scaling)));
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

const kernels::Table& kernels_for(Compute compute) {
  try {
    const kernels::Table& best = kernels::choose();
    if (compute == Compute::f32) return best;
    if (const kernels::Table* const products = kernels::with_bf16(best)) return *products;
  } catch (const std::runtime_error& error) {
    throw UsageError(error.what());
  }
  throw UsageError("compute is bf16, but the processor has no products of bf16 or MINIMIND_ISA excludes them; use f32");
}

std::size_t count_parameters(const Checkpoint& checkpoint) {
  std::size_t parameters = 0;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    std::size_t values = 1;
    for (const std::size_t size : tensor.shape) values *= size;
    parameters += values;
  }
  return parameters;
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
      compute_(parse_compute(options.compute)),
      session_files_(options.session_files != 0),
      engine_(load(checkpoint, options)),
      config_(engine_.model.config) {
  kv_type_name_ = name_of(engine_.kv_type);
  family_ = name_of(config().family);
  parameters_ = count_parameters(checkpoint);
  positions_ = options.context_length > 0 ? options.context_length : config().max_position_embeddings;
  const auto found = options.tokenizer ? std::optional<std::string>(options.tokenizer) : find_tokenizer(path_);
  if (found) read_tokenizer_at(*found, options.chat_template);
  end_tokens_ = minimind::end_tokens(config(), engine_.eos_was_assumed, optional_tokenizer());
  end_team();  // of loading; another thread may run the model
  if (session_files_) identity_ = identify(checkpoint, type_, compute_);
  note_all(checkpoint);
}

Engine LoadedModel::load(const Checkpoint& checkpoint, const minimind_model_options& options) {
  const kernels::Table& kernels = kernels_for(compute_);
  const std::size_t threads = options.threads > 0 ? options.threads : suitable_threads(checkpoint);
  Model model = load_model(checkpoint, type_, threads, compute_, memory_);
  const KvType kv_type = options.kv_type ? parse_kv_type(options.kv_type) : suitable_kv_type(model);
  const bool eos_was_assumed = checkpoint.sources.at("eos_token_id").kind == ConfigSource::Kind::assumed;
  return {std::move(model), kernels, threads, kv_type, eos_was_assumed};
}

void LoadedModel::read_tokenizer_at(const std::string& path, const char* template_path) {
  const TokenizerData data = read_tokenizer(path);
  tokenizer_.emplace(data);
  if (template_path) {
    chat_template_.emplace(read_text_file(template_path), template_path, special_tokens_of(data));
  } else {
    chat_template_ = ChatTemplate::of_tokenizer(data);
  }
  if (!chat_template_) chat_template_ = ChatTemplate::of_family(config().family, special_tokens_of(data));
  tag_tokens_ = answer_tag_tokens(*tokenizer_);
}

void LoadedModel::note_all(const Checkpoint& checkpoint) {
  notes_.clear();
  const auto add = [this](const std::string& line) { notes_ += (notes_.empty() ? "" : "\n") + line; };
  for (const LoraMerge& lora : checkpoint.loras) {
    add(fmt::format("{}: merged into {} tensors, kept as f32", lora.path, lora.changed.size()));
    if (!lora.without_experts.empty()) {
      add(fmt::format("{}: its matrices of experts were omitted, because the model is dense", lora.path));
    }
  }
  for (const std::string& fallback : engine_.model.type_fallbacks) add("kept " + fallback);
  const std::size_t most_positions = engine_.model.config.max_position_embeddings;
  if (positions_ > most_positions) {
    add(fmt::format("a context of {} positions exceeds the model's {}", positions_, most_positions));
  }
  if (!tokenizer_) {
    add(fmt::format("{}: has no tokenizer", path_));
  } else if (const auto misfit = tokenizer_misfit(*tokenizer_, config())) {
    add(fmt::format("{}: {}; text will be nonsense, so name the model's own tokenizer", tokenizer_->source(), *misfit));
  }
}

const Tokenizer& LoadedModel::tokenizer() const {
  if (tokenizer_) return *tokenizer_;
  throw Failure(MINIMIND_NO_TOKENIZER,
                fmt::format("{}: has no tokenizer, expected a tokenizer.json in its folder, or in model/ or "
                            "model/minimind_tokenizer/ there or one folder up; name one as the tokenizer",
                            opened_));
}

const ChatTemplate& LoadedModel::chat_template() const {
  tokenizer();
  return *chat_template_;
}

std::shared_ptr<const TokenTrie> LoadedModel::token_trie() {
  if (!token_trie_) token_trie_ = make_token_trie(tokenizer());
  return token_trie_;
}

const ModelIdentity& LoadedModel::identity() const {
  if (identity_) return *identity_;
  throw Failure(MINIMIND_BAD_ARGUMENT, "session files need the hash of the weights; open the model with session_files");
}

void LoadedModel::reload(const std::string& path) {
  const Checkpoint checkpoint = open_checkpoint(path, open_options_);
  replace(checkpoint);
}

void LoadedModel::load_tensors(std::span<const minimind_tensor> tensors) {
  StoredTensors stored;
  for (const minimind_tensor& tensor : tensors) {
    if (!stored.emplace(text_or_empty(tensor.name), stored_tensor_of(tensor)).second) {
      throw UsageError(fmt::format("{}: is given twice, expected once", quote(text_or_empty(tensor.name))));
    }
  }
  replace(checkpoint_of(std::move(stored), engine_.model.config, "the tensors in memory"));
}

void LoadedModel::replace(const Checkpoint& checkpoint) {
  std::optional<ModelIdentity> identity;
  if (session_files_) identity = identify(checkpoint, type_, compute_);
  // A file may turn out to be unreadable when a part of it is packed already: the running model stays as it is then.
  const auto& tensors = checkpoint.tensors;
  const bool in_memory =
      std::none_of(tensors.begin(), tensors.end(), [](const auto& t) { return t.second.data.file(); });
  HugePageArena memory = in_memory ? memory_.again() : HugePageArena();
  engine_.model = load_replacement(engine_.model, checkpoint, type_, engine_.threads, compute_, memory);
  memory_ = std::move(memory);
  memory_.free_unused();
  identity_ = std::move(identity);
  path_ = checkpoint.path;
  family_ = name_of(engine_.model.config.family);
  parameters_ = count_parameters(checkpoint);
  note_all(checkpoint);
}

}  // namespace minimind
