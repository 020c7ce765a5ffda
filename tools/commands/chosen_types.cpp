#include "tools/commands/chosen_types.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <string_view>
#include <vector>

#include "runtime/calibrate/calibration.h"
#include "runtime/calibrate/type_plan.h"
#include "tools/commands/calibration_text.h"
#include "tools/terminal/note.h"
#include "tools/terminal/standard_output.h"
#include "weights/base/error.h"
#include "weights/base/text.h"
#include "weights/gguf/metadata.h"
#include "weights/gguf/writer.h"
#include "weights/io/text_file.h"
#include "weights/tensor/shape.h"
#include "weights/tensor/weight_types.h"

namespace minimind {
namespace {

constexpr std::size_t most_tokens = 32768;  // of the calibration text that are read

// Types of a mix, which any reader of GGUF knows. The k-quants require rows of a multiple of 256.
constexpr std::array mixed_types = {DType::q3_k, DType::iq4_xs, DType::q4_k, DType::iq4_nl, DType::q4_1,
                                    DType::q5_k, DType::q5_0,   DType::q5_1, DType::q6_k,   DType::q8_0};

// A tensor of the file and the names of the checkpoint's matrices that it consists of.
struct FileTensor {
  const OutputTensor* output;
  std::vector<std::string> matrices;
};

// Returns the tensors of the file that are stored as a block type if all matrices shall be.
std::vector<FileTensor> quantizable_tensors(const Checkpoint& checkpoint, const std::vector<OutputTensor>& outputs) {
  std::map<const StoredTensor*, std::string> names;
  for (const auto& [name, tensor] : checkpoint.tensors) names[&tensor] = name;
  std::vector<FileTensor> tensors;
  for (const OutputTensor& output : outputs) {
    if (!is_block_type(output.dtype)) continue;
    FileTensor tensor{&output, {}};
    for (const StoredTensor* source : output.sources) tensor.matrices.push_back(names.at(source));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

bool fits(const FileTensor& tensor, DType type) {
  return std::all_of(tensor.output->sources.begin(), tensor.output->sources.end(),
                     [&](const StoredTensor* source) { return can_calibrate(type, source->shape.back()); });
}

std::size_t padded_bytes(const FileTensor& tensor, DType type) {
  return gguf_padded(byte_count(tensor.output->shape, type).value(), gguf_default_alignment);
}

class Choosing {
 public:
  Choosing(const TypeChoosing& options, const ChoosingWork& work)
      : options_(options),
        work_(work),
        exported_(work.exported(work.checkpoint, all_quantized())),
        tensors_(quantizable_tensors(work.checkpoint, exported_.tensors)) {}

  ChosenTypes run() {
    ChosenTypes result{work_.checkpoint, work_.types};
    if (tensors_.empty()) {
      throw UsageError(
          "--calibrate quantises, but no matrix of the file has a block type; choose one, e.g. --type iq4_nl");
    }
    if (!options_.plan.empty()) read_plan(result.types);
    if (!options_.text.empty()) measure_text();
    if (options_.size || options_.bits) choose(result.types);
    if (calibration_) quantize(result);
    return result;
  }

 private:
  WantedTypes all_quantized() const {
    WantedTypes types = work_.types;
    if (options_.size || options_.bits || !options_.plan.empty()) types = {.matrices = DType::q8_0, .embedding = {}};
    return types;
  }

  void read_plan(WantedTypes& types) {
    types.by_name = parse_type_plan(read_text_or_pipe(options_.plan), options_.plan);
    std::map<std::string_view, const OutputTensor*> known;
    for (const OutputTensor& output : exported_.tensors) known.emplace(output.name, &output);
    for (const auto& [name, type] : types.by_name) {
      const auto found = known.find(name);
      if (found == known.end() || !found->second->type_chosen) {
        throw Error(
            fmt::format("{}: {} is {}, expected a matrix such as {}", options_.plan, quote(name),
                        found == known.end() ? "not a tensor of the file" : "a vector or router, whose type stays",
                        exported_.tensors.front().name));
      }
      if (is_float_type(type) || (options_.text.empty() ? is_weight_type(type) : has_calibration(type))) continue;
      throw Error(fmt::format("{}: {} is {}, expected a type that {} writes; {}", options_.plan, name, name_of(type),
                              options_.text.empty() ? "convert without --calibrate" : "convert",
                              has_calibration(type) ? "add --calibrate" : "choose e.g. q8_0, q6_k or iq4_nl"));
    }
  }

  static bool has_calibration(DType type) { return can_calibrate(type, block_shape(type).elements); }

  void measure_text() {
    if (work_.tokenizer.empty()) {
      throw UsageError("--calibrate requires a tokenizer, and the model has none; name one with --tokenizer");
    }
    const ReadCalibrationText read =
        read_calibration_text(options_.text, work_.checkpoint.config, work_.tokenizer, most_tokens);
    calibration_.emplace(work_.checkpoint, read.text, work_.threads,
                         [&](std::size_t done, std::size_t total) { work_.progress(done, 2 * total); });
    if (!work_.quiet) note_weaknesses(read);
  }

  void note_weaknesses(const ReadCalibrationText& read) const {
    const std::size_t tokens = read.text.tokens.size();
    if (2 * read.split_characters > tokens) {
      note(
          "{}: {} of {} tokens are parts of characters, so the tokenizer hardly knows this text; it may be of another "
          "language or tokenizer",
          options_.text, read.split_characters, tokens);
    }
    const double chance = std::log(static_cast<double>(work_.checkpoint.config.vocab_size));
    if (calibration_->nats_per_token() > chance) {
      note(
          "{}: the model predicts it with {:.2f} nats per token, no better than chance ({:.2f}); it may be of another "
          "language or tokenizer",
          options_.text, calibration_->nats_per_token(), chance);
    }
    const Calibration::Coverage least = calibration_->least_coverage();
    if (least.tokens < least.cols) {
      note(
          "{}: {} tokens reach {}, which has {} columns, too few to determine its errors; they are damped. A text of "
          "{} tokens "
          "or more is better",
          options_.text, least.tokens, least.matrix, least.cols,
          std::min(most_tokens, tokens * least.cols / std::max<std::size_t>(least.tokens, 1) + 1));
    }
  }

  // The bytes of the file that are not those of the tensors to choose types for.
  std::size_t fixed_bytes() const {
    std::size_t bytes = gguf_header(exported_.metadata, exported_.tensors).size();
    for (const OutputTensor& output : exported_.tensors)
      bytes += gguf_padded(byte_count(output), gguf_default_alignment);
    for (const FileTensor& tensor : tensors_) bytes -= padded_bytes(tensor, tensor.output->dtype);
    return bytes;
  }

  void choose(WantedTypes& types) {
    std::vector<PlannedTensor> plan;
    std::size_t weights = 0;
    for (const FileTensor& tensor : tensors_) {
      PlannedTensor planned{tensor.output->name, element_count(tensor.output->shape).value(), {}, 0};
      for (const DType type : mixed_types) {
        if (!fits(tensor, type)) continue;
        double loss = 0;
        for (const std::string& matrix : tensor.matrices) loss += calibration_->loss(matrix, type);
        planned.choices.push_back({type, padded_bytes(tensor, type), loss});
      }
      weights += planned.weights;
      plan.push_back(std::move(planned));
      work_.progress(2 * tensors_.size() + plan.size(), 4 * tensors_.size());
    }
    const std::size_t fixed = fixed_bytes();
    const std::size_t budget = options_.size
                                   ? *options_.size - std::min(*options_.size, fixed)
                                   : static_cast<std::size_t>(*options_.bits * static_cast<double>(weights) / 8);
    if (!choose_types(plan, budget)) {
      std::size_t least = 0;
      for (const PlannedTensor& tensor : plan) least += tensor.choice().bytes;
      throw Error(options_.size
                      ? fmt::format("--size is {} bytes, expected {} or more, of which {} are not weights of matrices",
                                    *options_.size, fixed + least, fixed)
                      : fmt::format("--bits is {}, expected {:.3f} or more", *options_.bits,
                                    8.0 * static_cast<double>(least) / static_cast<double>(weights) + 0.0005));
    }
    for (const PlannedTensor& tensor : plan) types.by_name[tensor.name] = tensor.choice().type;
    print_output("{}", type_plan_text(plan));
  }

  // std::nullopt: as stored, because the plan does not name it.
  std::optional<DType> type_of(const FileTensor& tensor, const WantedTypes& types) const {
    const auto named = types.by_name.find(tensor.output->name);
    if (named != types.by_name.end()) return named->second;
    return options_.plan.empty() ? std::optional(tensor.output->dtype) : std::nullopt;
  }

  void quantize(ChosenTypes& result) {
    std::size_t done = 0;
    for (const FileTensor& tensor : tensors_) {
      const std::optional<DType> type = type_of(tensor, result.types);
      for (const std::string& matrix : tensor.matrices) {
        StoredTensor& stored = result.checkpoint.tensors.at(matrix);
        if (type && stored.dtype == work_.checkpoint.tensors.at(matrix).dtype && stored.dtype != *type &&
            can_calibrate(*type, stored.shape.back())) {
          stored = calibration_->quantize(matrix, *type);
          calibration_->forget(matrix);
        }
      }
      work_.progress(3 * tensors_.size() + ++done, 4 * tensors_.size());
    }
  }

  const TypeChoosing& options_;
  const ChoosingWork& work_;
  GgufExport exported_;
  std::vector<FileTensor> tensors_;
  std::optional<Calibration> calibration_;
};

}  // namespace

std::size_t parse_size(const std::string& text) {
  std::string_view unit = text;
  const double number = take_number<double>(unit).value_or(0);
  const std::map<std::string_view, double> units{{"", 1}, {"B", 1}, {"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}};
  const auto found = units.find(unit);
  if (found == units.end() || !(number > 0) || number * found->second > 1e15) {
    throw UsageError(fmt::format("--size is {}, expected a number of bytes such as 3.2MB or 650kB", quote(text)));
  }
  return static_cast<std::size_t>(number * found->second);
}

ChosenTypes choose_types(const TypeChoosing& options, const ChoosingWork& work) {
  return Choosing(options, work).run();
}

}  // namespace minimind
