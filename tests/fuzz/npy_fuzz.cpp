#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/mutate.h"
#include "tests/support/little_endian.h"
#include "tests/support/read_bytes.h"
#include "tools/commands/npy.h"

// Reads the input as a .npy file, and its first and last row.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace minimind;
  read_bytes_at_path(data, size, [](const std::string& path) {
    const NpyReader array(path);
    if (array.rows() == 0) return;
    std::vector<float> row(array.cols());
    array.read_row(0, row);
    array.read_row(array.rows() - 1, row);
  });
  return 0;
}

// Changes the header, and writes its right length.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  using namespace minimind;
  return mutate_structure(
      data, size, max_size, seed, [](std::string_view input, Dice& dice) -> std::optional<std::string> {
        const std::size_t end = input.find('\n');
        if (input.size() < 12 || end == std::string_view::npos || end < 10) return std::nullopt;
        std::string header(input.substr(10, end - 10)), numbers(input.substr(end + 1));
        const std::size_t shape = header.find("'shape': (");
        if (dice.one_in(2) && shape != std::string::npos) {
          const std::size_t rows = dice.below(6), cols = dice.below(6);
          header.resize(shape);
          header += "'shape': (" + std::to_string(rows) + ", " + std::to_string(cols) + "), }";
          numbers.resize(rows * cols * sizeof(float));
        } else {
          mutate_bytes(dice.one_in(2) ? header : numbers);
        }
        header += '\n';
        std::string file(input.substr(0, 6));
        const bool is_first_version = !dice.one_in(4);
        file += is_first_version ? '\x01' : static_cast<char>(dice.below(4));
        file += '\0';
        file += little_endian(static_cast<std::uint32_t>(header.size())).substr(0, file[6] == '\x01' ? 2 : 4);
        return file + header + numbers;
      });
}
