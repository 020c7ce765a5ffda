#include "weights/io/sha256.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>

#include "weights/base/x86_features.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace minimind {
namespace {

using State = std::array<std::uint32_t, 8>;
using Word = std::uint32_t;

constexpr std::size_t rounds = 64, block_words = 16, block_bytes = 64;

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
alignas(16) constexpr std::array<Word, rounds> constants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

// Words are stored with the highest byte first.
Word read_word(const std::byte* at) {
  Word word = 0;
  for (int i = 0; i < 4; ++i) word = word << 8 | std::to_integer<Word>(at[i]);
  return word;
}

void write_word(Word word, std::byte* at) {
  for (int i = 0; i < 4; ++i) at[i] = static_cast<std::byte>(word >> (24 - 8 * i));
}

// FIPS 180-4, section 6.2.2, with its letters.
void add_blocks_portably(State& state, const std::byte* blocks, std::size_t count) {
  for (; count > 0; --count, blocks += block_bytes) {
    std::array<Word, rounds> w{};
    for (std::size_t t = 0; t < block_words; ++t) w[t] = read_word(blocks + 4 * t);
    for (std::size_t t = block_words; t < rounds; ++t) {
      const Word before = w[t - 15], last = w[t - 2];
      const Word sigma0 = std::rotr(before, 7) ^ std::rotr(before, 18) ^ before >> 3;
      const Word sigma1 = std::rotr(last, 17) ^ std::rotr(last, 19) ^ last >> 10;
      w[t] = sigma1 + w[t - 7] + sigma0 + w[t - 16];
    }
    auto [a, b, c, d, e, f, g, h] = state;
    for (std::size_t t = 0; t < rounds; ++t) {
      const Word sum1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
      const Word sum0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
      const Word t1 = h + sum1 + ((e & f) ^ (~e & g)) + constants[t] + w[t];
      const Word t2 = sum0 + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    const State added{a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < state.size(); ++i) state[i] += added[i];
  }
}

#if defined(__x86_64__)

#define WITH_SHA __attribute__((target("sha,sse4.1,ssse3")))

// The instruction of two rounds takes the state as (a b e f) and (c d g h), highest word first.
WITH_SHA void add_blocks_with_sha(State& state, const std::byte* blocks, std::size_t count) {
  const __m128i reversed_bytes = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  const auto load = [](const void* at) WITH_SHA { return _mm_loadu_si128(static_cast<const __m128i*>(at)); };
  const __m128i badc = _mm_shuffle_epi32(load(state.data()), 0xb1), hgfe = _mm_shuffle_epi32(load(&state[4]), 0x1b);
  __m128i abef = _mm_alignr_epi8(badc, hgfe, 8), cdgh = _mm_blend_epi16(hgfe, badc, 0xf0);
  for (; count > 0; --count, blocks += block_bytes) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i w[4];  // the last 16 words, those of group i in w[i % 4]
    for (std::size_t group = 0; group < rounds / 4; ++group) {
      __m128i& words = w[group % 4];
      if (group < 4) {
        words = _mm_shuffle_epi8(load(blocks + 16 * group), reversed_bytes);
      } else {
        const __m128i last = w[(group + 3) % 4], seven_before = _mm_alignr_epi8(last, w[(group + 2) % 4], 4);
        words = _mm_sha256msg1_epu32(words, w[(group + 1) % 4]);
        words = _mm_sha256msg2_epu32(_mm_add_epi32(words, seven_before), last);
      }
      const __m128i sums = _mm_add_epi32(words, load(&constants[4 * group]));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sums);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sums, 0x0e));
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state.data()), _mm_blend_epi16(feba, dchg, 0xf0));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(&state[4]), _mm_alignr_epi8(dchg, feba, 8));
}

#undef WITH_SHA

#endif

}  // namespace

void Sha256::add_blocks(const std::byte* blocks, std::size_t count) {
#if defined(__x86_64__)
  if (!portable_ && x86_features().sha) return add_blocks_with_sha(state_, blocks, count);
#endif
  add_blocks_portably(state_, blocks, count);
}

void Sha256::update(std::span<const std::byte> bytes) {
  const std::size_t filled = size_ % block_bytes;
  size_ += bytes.size();
  if (filled > 0) {
    const auto first = bytes.first(std::min(bytes.size(), block_bytes - filled));
    std::ranges::copy(first, rest_.begin() + static_cast<std::ptrdiff_t>(filled));
    bytes = bytes.subspan(first.size());
    if (filled + first.size() < block_bytes) return;
    add_blocks(rest_.data(), 1);
  }
  const std::size_t blocks = bytes.size() / block_bytes;
  add_blocks(bytes.data(), blocks);
  std::ranges::copy(bytes.subspan(blocks * block_bytes), rest_.begin());
}

// A bit 1, zeros, and the number of bits in the last eight bytes of a block.
std::array<std::byte, 32> Sha256::digest() {
  std::array<std::byte, 2 * block_bytes> end{};
  end[0] = std::byte{0x80};
  const std::uint64_t bits = 8 * size_;
  const std::size_t filled = size_ % block_bytes;
  const std::size_t padding = (filled < block_bytes - 8 ? block_bytes : 2 * block_bytes) - filled;
  write_word(static_cast<Word>(bits >> 32), &end[padding - 8]);
  write_word(static_cast<Word>(bits), &end[padding - 4]);
  update(std::span(end).first(padding));
  std::array<std::byte, 32> digest{};
  for (std::size_t i = 0; i < state_.size(); ++i) write_word(state_[i], &digest[4 * i]);
  return digest;
}

std::string Sha256::hex_digest() {
  std::string text;
  for (const std::byte byte : digest()) text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return text;
}

std::string sha256_of(std::string_view text) {
  Sha256 hash;
  hash.update(std::as_bytes(std::span(text)));
  return hash.hex_digest();
}

}  // namespace minimind
