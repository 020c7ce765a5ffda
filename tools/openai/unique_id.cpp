#include "tools/openai/unique_id.h"

#include <array>
#include <cstdint>
#include <random>

namespace minimind {

std::string unique_id(std::string_view prefix) {
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  constexpr std::size_t length = 24;
  thread_local std::mt19937_64 random = [] {
    std::random_device device;
    std::array<std::uint32_t, 8> entropy{};
    for (std::uint32_t& word : entropy) word = device();
    std::seed_seq seed(entropy.begin(), entropy.end());
    return std::mt19937_64(seed);
  }();
  std::uniform_int_distribution<std::size_t> any(0, letters.size() - 1);
  std::string id(prefix);
  for (std::size_t i = 0; i < length; ++i) id += letters[any(random)];
  return id;
}

}  // namespace minimind
