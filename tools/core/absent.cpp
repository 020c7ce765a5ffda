// What the core has not, of what its sources call: blocks but those of q8_0, kernels for them and for tiles, DRY, and
// Unicode's normal forms.

#include <fmt/core.h>

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "runtime/engine/packed_matrix.h"
#include "runtime/generate/generate.h"
#include "runtime/kernels/instruction_sets.h"
#include "runtime/tokenizer/tokenizer_data.h"
#include "weights/base/error.h"
#include "weights/tensor/block_formats.h"

namespace minimind {

std::optional<BlockFormat> more_block_format(DType) {
  return std::nullopt;
}
constinit const std::span<const MatrixFormat> more_matrix_formats{};
const std::span<const kernels::InstructionSet> kernels::instruction_sets = plain_instruction_sets;
std::unique_ptr<TextPenalties> make_dry(const DryOptions&, const Tokenizer*, std::size_t) {
  throw UsageError("dry_multiplier is over 0, expected 0: this program has no DRY");
}
std::pair<std::string, TextMarks> normalized_parts(std::string_view, const TextMarks&, std::size_t, NormalForm form) {
  throw Error(
      fmt::format("the tokenizer's normalizer is {}, expected none: this program has no such tables", name_of(form)));
}

}  // namespace minimind
