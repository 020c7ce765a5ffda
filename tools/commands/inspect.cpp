#include <memory>
#include <nlohmann/json.hpp>

#include "runtime/tokenizer/tokenizer.h"
#include "runtime/tokenizer/tokenizer_generation.h"
#include "tools/commands/fold_tensors.h"
#include "tools/options/choose_tokenizer.h"
#include "tools/options/command_line.h"
#include "tools/options/config_fields.h"
#include "tools/options/help.h"
#include "tools/options/load_llm.h"
#include "tools/options/options.h"
#include "tools/terminal/language.h"
#include "tools/terminal/note.h"
#include "tools/terminal/standard_output.h"
#include "weights/base/text.h"
#include "weights/checkpoint/weights_hash.h"
#include "weights/gguf/metadata.h"
#include "weights/io/json_fields.h"
#include "weights/tensor/shape.h"

namespace minimind {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct InspectOptions {
  CheckpointOptions checkpoint;
  std::string tokenizer;
  bool json = false;
  bool tensors = false;
};

OrderedJson to_json(const Tokenizer& tokenizer, const Config& model) {
  const auto misfit = tokenizer_misfit(tokenizer, model);
  const auto id_or_null = [](std::optional<std::int32_t> id) { return id ? OrderedJson(*id) : OrderedJson(nullptr); };
  return {{"path", tokenizer.source()},
          {"vocab_size", tokenizer.vocab_size()},
          {"bos_token_id", id_or_null(tokenizer.bos_id())},
          {"eos_token_id", id_or_null(tokenizer.eos_id())},
          {"pad_token_id", id_or_null(tokenizer.pad_id())},
          {"chat_template", tokenizer.chat_template().has_value()},
          {"misfit", misfit ? OrderedJson(misfit->english()) : OrderedJson(nullptr)}};
}

// Returns a text such as "6400 tokens, ends a text with 2 '<|im_end|>', with a chat template".
std::string described(const Tokenizer& tokenizer) {
  std::string text = localized("{} tokens", tokenizer.vocab_size());
  if (const auto eos = tokenizer.eos_id()) {
    text = localized("{}, ends a text with {} {}", text, *eos, quote(tokenizer.token_text(*eos)));
  }
  return tokenizer.chat_template() ? localized("{}, with a chat template", text)
                                   : localized("{}, without a chat template", text);
}

constexpr std::size_t longest_list = 8;

// Longer lists are described in words.
OrderedJson to_json(const std::vector<bool>& list, const GgufValue& value) {
  return list.size() > longest_list ? OrderedJson(shown(value)) : OrderedJson(list);
}

OrderedJson to_json(const GgufTexts& texts, const GgufValue& value) {
  return texts.size() > longest_list ? OrderedJson(shown(value)) : OrderedJson(texts.separate());
}

template <class Wide>
OrderedJson to_json(const GgufNumbers<Wide>& numbers, const GgufValue& value) {
  return numbers.size() > longest_list ? OrderedJson(shown(value)) : OrderedJson(numbers.widened());
}

template <class Scalar>
OrderedJson to_json(const Scalar& scalar, const GgufValue&) {
  return scalar;
}

OrderedJson to_json(double number, const GgufValue& value) {
  return as_meant(number, value.type);
}

OrderedJson to_json(const GgufValue& value) {
  return std::visit([&](const auto& data) { return to_json(data, value); }, value.data);
}

double bits_per_weight(DType type) {
  const BlockShape block = block_shape(type);
  return 8 * static_cast<double>(block.bytes) / static_cast<double>(block.elements);
}

// Over all tensors; 0 if there are none.
double bits_per_weight(const Checkpoint& checkpoint) {
  double bits = 0, weights = 0;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    const auto count = static_cast<double>(element_count(tensor.shape).value());
    bits += count * bits_per_weight(tensor.dtype);
    weights += count;
  }
  return weights == 0 ? 0 : bits / weights;
}

void print_json(const Checkpoint& checkpoint, const std::optional<Tokenizer>& tokenizer) {
  OrderedJson config, sources, tensors = OrderedJson::array(), metadata = OrderedJson::object();
  for (const ConfigField& field : config_fields(checkpoint)) {
    config[field.name] = field.value;
    sources[field.name] = field.source.english();
  }
  for (const auto& [name, tensor] : checkpoint.tensors) {
    tensors.push_back({{"name", name},
                       {"type", name_of(tensor.dtype)},
                       {"bits_per_weight", bits_per_weight(tensor.dtype)},
                       {"shape", tensor.shape}});
  }
  std::vector<OrderedJson::object_t::value_type>& by_key =
      metadata.get_ref<OrderedJson::object_t&>();  // which would look for each key among all before it
  if (checkpoint.metadata) {
    for (const auto& [key, value] : checkpoint.metadata->entries()) by_key.emplace_back(key, to_json(value));
  }
  const OrderedJson json{{"path", checkpoint.path},
                         {"format", checkpoint.format},
                         {"parameters", parameter_count(checkpoint)},
                         {"types", stored_types(checkpoint)},
                         {"bits_per_weight", bits_per_weight(checkpoint)},
                         {"sha256", weights_sha256(checkpoint.tensors)},
                         {"config", config},
                         {"sources", sources},
                         {"metadata", metadata},
                         {"skipped_buffers", checkpoint.skipped},
                         {"other_modalities", checkpoint.other_modalities},
                         {"unused_settings", checkpoint.unused_settings},
                         {"code_not_read", checkpoint.code_not_read},
                         {"code_edited", checkpoint.code_edited},
                         {"lora_changed", checkpoint.lora_changed},
                         {"tokenizer", tokenizer ? to_json(*tokenizer, checkpoint.config) : OrderedJson(nullptr)},
                         {"tensors", tensors}};
  print_output("{}\n", dump_json(json, -1, InvalidUtf8::replace));
}

void print_list(std::string_view label, const std::vector<std::string>& names) {
  if (names.empty()) return;
  print_output("\n{}\n", label);
  for (const std::string& name : names) print_output("  {}\n", quote(name));
}

void print_metadata(const GgufMetadata& metadata) {
  if (metadata.entries().empty()) return;
  print_output("\n{}\n", translated("metadata of the file"));
  for (const auto& [key, value] : metadata.entries()) {
    print_output("  {:<46}  {}\n", is_tensor_name(key) ? key : quote(key), shown(value));
  }
}

void print_tensor(const std::string& name, DType dtype, const std::vector<std::size_t>& shape) {
  print_output("  {:<56}  {:<8}{:>7.4g}  {}\n", name, name_of(dtype), bits_per_weight(dtype), shape_text(shape));
}

void print_tensors(const Checkpoint& checkpoint, bool every_one) {
  if (every_one) {
    print_output("\n{}\n", translated("tensors, by their Hugging Face names, with the bits per weight"));
    for (const auto& [name, tensor] : checkpoint.tensors) print_tensor(name, tensor.dtype, tensor.shape);
    print_list(translated("changed by LoRA and kept as f32"), checkpoint.lora_changed);
    return;
  }
  print_output("\n{}\n",
               translated("tensors, by their Hugging Face names, with the bits per weight; equal layers on one "
                          "line, --tensors lists all"));
  for (const FoldedTensors& fold : fold_tensors(checkpoint.tensors)) print_tensor(fold.name, fold.dtype, fold.shape);
  StoredTensors changed;
  for (const std::string& name : checkpoint.lora_changed) changed.emplace(name, checkpoint.tensors.at(name));
  std::vector<std::string> names;
  for (const FoldedTensors& fold : fold_tensors(changed)) names.push_back(fold.name);
  print_list(translated("changed by LoRA and kept as f32"), names);
}

void print_text(const Checkpoint& checkpoint, const std::optional<Tokenizer>& tokenizer, bool every_tensor) {
  print_output("{}\n", localized("{}: {}, {:.2f} M parameters, {}, {:.4g} bits per weight", checkpoint.path,
                                 checkpoint.format, 1e-6 * static_cast<double>(parameter_count(checkpoint)),
                                 stored_types(checkpoint), bits_per_weight(checkpoint)));
  print_output("{}\n\n", localized("sha256 of the weights as f32: {}", weights_sha256(checkpoint.tensors)));
  for (const ConfigField& field : config_fields(checkpoint)) {
    const std::string value = field.value.is_string() ? field.value.get<std::string>() : dump_json(field.value);
    print_output("  {:<24}{:<12}  {}\n", field.name, value, localized(field.source));
  }
  for (const Fact& fact : checkpoint_notes(checkpoint)) print_output("\n{}\n", localized(fact));
  if (tokenizer) {
    print_output("\n{}\n", localized("tokenizer {}: {}", tokenizer->source(), described(*tokenizer)));
    const auto misfit = tokenizer_misfit(*tokenizer, checkpoint.config);
    if (misfit) print_output("  {}\n", localized("but {}", localized(*misfit)));
  } else {
    print_output("\n{}\n", translated("no tokenizer in the model, next to it, or in model/, ../model/ or "
                                      "minimind_tokenizer/ there"));
  }
  if (checkpoint.metadata) print_metadata(*checkpoint.metadata);
  print_tensors(checkpoint, every_tensor);
  print_list(translated("saved buffers, not read but computed"), checkpoint.skipped);
  print_list(translated("settings that do not change what is computed"), checkpoint.unused_settings);
}

int run_inspect(const InspectOptions& options) {
  const std::string path = model_path(options.checkpoint.model);
  const Checkpoint checkpoint = open_checkpoint(path, options.checkpoint.open_options());
  const auto tokenizer = optional_tokenizer(options.tokenizer, path);
  if (tokenizer) note(tokenizer_facts(*tokenizer, checkpoint.config));
  options.json ? print_json(checkpoint, tokenizer) : print_text(checkpoint, tokenizer, options.tensors);
  return 0;
}

}  // namespace

Command add_inspect(CommandOptions& command) {
  auto options = std::make_shared<InspectOptions>();
  options->checkpoint.add_to(command);
  add_tokenizer(command, options->tokenizer);
  Option* const json = add_json(command, options->json);
  command
      .add_flag("--tensors", options->tensors, output_group,
                bilingual("list every tensor, also those of equal layers", "列出所有张量，包括各层相同的"))
      ->excludes(json);
  return [options] { return run_inspect(*options); };
}

}  // namespace minimind
