#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace minimind {

// SHA-256 (FIPS 180-4), with the SHA instructions of x86 processors that have them.
class Sha256 {
 public:
  // `portable`: without these instructions, which change no hash.
  explicit Sha256(bool portable = false) : portable_(portable) {}

  void update(std::span<const std::byte> bytes);

  // Returns the hash of all bytes added; nothing can be added afterwards.
  std::array<std::byte, 32> digest();
  // Returns the hash as 64 hexadecimal digits.
  std::string hex_digest();

 private:
  static constexpr std::size_t block_bytes = 64;

  void add_blocks(const std::byte* blocks, std::size_t count);

  bool portable_;
  // The first 32 bits of the fractional parts of the square roots of the first eight primes.
  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, block_bytes> rest_{};  // size_ % block_bytes bytes that do not fill a block
  std::uint64_t size_ = 0;                     // of all bytes added
};

// Returns the hash of a text as 64 hexadecimal digits.
std::string sha256_of(std::string_view text);

}  // namespace minimind
