#include "weights/checkpoint/weights_hash.h"

#include <algorithm>
#include <span>
#include <vector>

#include "weights/io/sha256.h"
#include "weights/tensor/shape.h"
#include "weights/tensor/stored_numbers.h"

namespace minimind {

std::string weights_sha256(const StoredTensors& tensors) {
  // A multiple of every block size, small enough to be hashed from the cache.
  constexpr std::size_t chunk = 16384;
  std::vector<float> values(chunk);
  Sha256 hash;
  for (const auto& [name, tensor] : tensors) {
    const std::string line = name + " " + shape_text(tensor.shape) + "\n";
    hash.update(std::as_bytes(std::span(line)));
    const std::size_t numbers = element_count(tensor.shape).value();
    for (std::size_t first = 0; first < numbers; first += chunk) {
      const std::span part = std::span(values).first(std::min(chunk, numbers - first));
      read_floats(tensor, first, part.size(), part.data());
      hash.update(std::as_bytes(part));
    }
  }
  return hash.hex_digest();
}

}  // namespace minimind
