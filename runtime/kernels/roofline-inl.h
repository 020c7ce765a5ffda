// Included by kernels-inl.h only, after block_matmul-inl.h: the peak speed of memory and arithmetic units, for
// `minimind bench`.

namespace minimind::kernels {
namespace {

// Independent sums, which hide the latency of an addition: two units with a latency of four to six cycles require 8 to
// 12, which with two operands still fit in 16 registers.
constexpr std::size_t chains = 12;

inline float sum_of(const Floats (&sums)[chains]) {
  Floats total = sums[0];
  for (std::size_t i = 1; i < chains; ++i) total = total + sums[i];
  return sum_of(total);
}

float read(const float* x, std::size_t n) noexcept {
  Floats sums[chains];
  for (Floats& sum : sums) sum = Floats(0.0f);
  std::size_t i = 0;
  for (; i + chains * lanes <= n; i += chains * lanes) {
    for (std::size_t chain = 0; chain < chains; ++chain) sums[chain] = sums[chain] + load(x + i + chain * lanes);
  }
  float rest = 0;
  for (; i < n; ++i) rest += x[i];
  return sum_of(sums) + rest;
}

float multiply_add(float factor, float addend, std::size_t rounds) noexcept {
  const Floats by(factor), plus(addend);
  Floats sums[chains];
  // All different; otherwise the compiler computes one of them and copies it.
  for (std::size_t chain = 0; chain < chains; ++chain) sums[chain] = Floats(static_cast<float>(chain));
  for (std::size_t round = 0; round < rounds; ++round) {
    for (std::size_t chain = 0; chain < chains; ++chain) sums[chain] = xsimd::fma(sums[chain], by, plus);
  }
  return sum_of(sums);
}

// Independent sums of a panel's rows, also to hide latency: one register each with VNNI, four or eight without. And as
// many steps as fit in the 16 bits of a sum: 64 * 2 * 127 < 2^15.
#if defined(__AVX512VNNI__)
constexpr std::size_t int8_chains = 12;
#else
constexpr std::size_t int8_chains = 2;
#endif
constexpr std::size_t int8_steps = 64;

// Hides from the compiler that the weights do not change; otherwise it would multiply with them once.
inline void forget(Group& weights) {
#if defined(__AVX512VNNI__)
  asm("" : "+v"(weights));
#else
  for (auto& row : weights.rows) {
#if defined(__aarch64__)
    asm("" : "+w"(row));
#else
    asm("" : "+x"(row));
#endif
  }
#endif
}

// UnsignedDot requires the fewest instructions per product.
float multiply_add_int8(std::int8_t factor, std::size_t rounds) noexcept {
  std::int8_t ones[panel_rows * group_cols], activations[group_cols];
  std::memset(ones, 1, sizeof ones);
  std::memset(activations, factor, sizeof activations);
  Group weights = load_group(ones);
  Floats total(0.0f);
  for (std::size_t round = 0; round < rounds; ++round) {
    UnsignedDot::Sums sums[int8_chains];
    for (auto& sum : sums) sum = UnsignedDot::start(0);
#pragma GCC unroll 8  // otherwise every step moves the sums between registers
    for (std::size_t step = 0; step < int8_steps; ++step) {
      for (auto& sum : sums) {
        forget(weights);
        UnsignedDot::add(sum, weights, activations);
      }
    }
    for (const auto& sum : sums) {
      const Column column = UnsignedDot::finish(sum);
      for (std::size_t p = 0; p < parts; ++p) total = total + column.part[p];
    }
  }
  return sum_of(total);
}

}  // namespace
}  // namespace minimind::kernels
