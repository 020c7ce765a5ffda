#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <string_view>

// libFuzzer's own mutator.
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

// What mutators share that know the structure of an input. Most random bytes are rejected by the first check of a
// reader; these change one thing and keep lengths, offsets and syntax right, so that the checks behind it are reached.
namespace minimind {

// The random choices of one mutation. libFuzzer repeats a mutation by its seed.
class Dice {
 public:
  explicit Dice(unsigned seed) : random_(seed) {}

  std::size_t below(std::size_t count) { return random_() % count; }
  bool one_in(std::size_t count) { return below(count) == 0; }
  template <class List>
  decltype(auto) pick(List& list) {
    return list[below(std::size(list))];
  }

  // A number at or near a limit of some type.
  std::uint64_t number() {
    if (one_in(3)) return below(300);
    const std::uint64_t power = std::uint64_t{1} << below(64);
    return power + below(3) - 1;
  }

 private:
  std::mt19937_64 random_;
};

// Lets libFuzzer change a part of the input.
inline void mutate_bytes(std::string& bytes) {
  const std::size_t size = bytes.size();
  bytes.resize(size + 64);
  bytes.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(bytes.data()), size, bytes.size()));
}

// The body of LLVMFuzzerCustomMutator. `change` gets the input and returns a changed one, or nothing if it cannot read
// it. libFuzzer's own mutator has a share, because a file need not be of the form that `change` writes.
template <class Change>
std::size_t mutate_structure(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed, Change change) {
  Dice dice(seed);
  if (dice.one_in(5)) return LLVMFuzzerMutate(data, size, max_size);
  const std::optional<std::string> changed = change(std::string_view(reinterpret_cast<const char*>(data), size), dice);
  if (!changed || changed->empty() || changed->size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, changed->data(), changed->size());
  return changed->size();
}

}  // namespace minimind
