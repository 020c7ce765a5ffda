#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/engine/context.h"
#include "runtime/engine/forward.h"
#include "runtime/engine/load_model.h"
#include "runtime/generate/generate.h"
#include "runtime/kernels/instruction_sets.h"
#include "runtime/kernels/kernels.h"
#include "tests/fuzz/mutate.h"
#include "tests/support/little_endian.h"
#include "tests/support/read_bytes.h"
#include "weights/checkpoint/open_checkpoint.h"

// Opens the input without its first byte as a checkpoint and continues a text with it, through the kernels that are
// compiled for every machine of the architecture. The first byte chooses how weights and keys are kept, and the
// sampling.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace minimind;
  if (size == 0) return 0;
  constexpr std::optional<DType> types[] = {std::nullopt, DType::f32,  DType::f16,
                                            DType::bf16,  DType::q8_0, DType::q4_0};
  constexpr KvType kv_types[] = {KvType::f32, KvType::f16, KvType::q8_0};
  const unsigned choice = data[0];
  read_bytes_at_path(data + 1, size - 1, [&](const std::string& path) {
    constexpr std::size_t positions = 12;
    const Model model = load_model(open_checkpoint(path, {}), types[choice % 6], 1);
    Forward forward(model, kernels::runnable().back(), 1, 4, positions);
    Context context(model.config, positions, kv_types[choice / 6 % 3]);
    GenerateOptions options;
    options.max_tokens = positions;
    options.sampling.temperature = choice / 18 % 2;
    options.scores = 2;
    const std::int32_t last = static_cast<std::int32_t>(model.config.vocab_size) - 1;
    const std::atomic<bool> never = false;
    const Generated text = generate(
        forward, context, nullptr, std::vector<std::int32_t>{0, last, last / 2, 1 % (last + 1), 0}, options,
        [](std::string_view) {}, never);
    for (const std::int32_t token : text.tokens) {
      if (token < 0 || token > last) std::abort();
    }
  });
  return 0;
}

// Writes a few floats of any kind where the weights are, in f32 or in 16 bits: readers check the rest of a file, but
// not its numbers.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  using namespace minimind;
  return mutate_structure(
      data, size, max_size, seed, [](std::string_view input, Dice& dice) -> std::optional<std::string> {
        constexpr std::uint32_t floats[] = {0x7FC00000, 0xFFC00000, 0x7F800000, 0xFF800000, 0x7F7FFFFF, 0xFF7FFFFF,
                                            0x00000001, 0x80000000, 0x00000000, 0x3F800000, 0xBF800000, 0x7E007E00,
                                            0x7C007C00, 0xFC00FC00, 0x7BFF7BFF, 0x00010001};
        std::string file(input);
        if (dice.one_in(4)) file[0] = static_cast<char>(dice.below(36));
        if (file.size() < 100) return file;
        for (std::size_t runs = dice.below(4) + 1; runs-- > 0;) {
          const std::string value = little_endian(dice.pick(floats));
          std::size_t at = dice.below(file.size() - 4);
          for (std::size_t count = dice.one_in(3) ? dice.below(500) : 1; count-- > 0 && at + 4 < file.size(); at += 4) {
            file.replace(at, 4, value);
          }
        }
        return file;
      });
}
