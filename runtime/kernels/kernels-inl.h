// The one source of every kernel. Each instruction set's .cpp defines MINIMIND_ARCH (an xsimd architecture) and
// MINIMIND_TABLE (the name of its table) and includes this file once. Everything but the table has internal linkage, so
// that the linker can never hand code compiled for one instruction set to another.

#include <cstring>
#include <xsimd/xsimd.hpp>

#include "runtime/kernels/columns-inl.h"
#include "runtime/kernels/kernels.h"
#include "runtime/kernels/limits-inl.h"

namespace minimind::kernels {
namespace {

// How many panels and tokens a register tile spans: accumulators, one column of weights and one broadcast must fit the
// 32 registers of AVX-512 or the 16 of the others. With a single token, several panels hide the latency of fma.
constexpr std::size_t tile_panels = parts == 1 ? 2 : 1;
constexpr std::size_t tile_tokens = parts == 1 ? 8 : parts == 2 ? 4 : 2;
constexpr std::size_t single_token_panels = parts == 1 ? 4 : parts == 2 ? 2 : 1;

// The n < lanes numbers at the end of an array; the other lanes hold `rest`.
inline Floats load_tail(const float* at, std::size_t n, float rest) {
  float padded[lanes];
  for (std::size_t i = 0; i < lanes; ++i) padded[i] = i < n ? at[i] : rest;
  return load(padded);
}

inline void store_tail(float* at, std::size_t n, Floats x) {
  float padded[lanes];
  x.store_unaligned(padded);
  std::memcpy(at, padded, n * sizeof(float));
}

// x[i] = f(x[i], i-th vector of y) over whole vectors and the tail.
template <class Function>
inline void update(float* x, const float* y, std::size_t n, Function f) {
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) f(load(x + i), load(y + i)).store_unaligned(x + i);
  if (i < n) store_tail(x + i, n - i, f(load_tail(x + i, n - i, 0), load_tail(y + i, n - i, 0)));
}

// Each encoding of a panel gives its columns as floats, to be asked for in rising order.
struct F32Panel {
  using Element = float;
  void start(const float* panels, std::size_t panel, std::size_t cols) { at = panels + panel * cols * panel_rows; }
  Column column(std::size_t col) const { return load_column(at + col * panel_rows); }
  const float* at;
};

template <class Half, Column (*load_half)(const std::uint16_t*)>
struct HalfPanel {
  using Element = Half;
  void start(const Half* panels, std::size_t panel, std::size_t cols) {
    at = reinterpret_cast<const std::uint16_t*>(panels) + panel * cols * panel_rows;
  }
  Column column(std::size_t col) const { return load_half(at + col * panel_rows); }
  const std::uint16_t* at;
};

inline Column load_quants(const Q8Block& block, std::size_t col) {
  return from_int8(load_bytes(block.quant[col]));
}

inline Bytes nibbles_of(const NibbleBlock& block, std::size_t col) {
  constexpr std::size_t half = block_cols / 2;
  return col < half ? load_nibbles<false>(block.nibbles[col]) : load_nibbles<true>(block.nibbles[col - half]);
}

inline Column load_quants(const Q4Block& block, std::size_t col) {
  return from_int8(less_8(nibbles_of(block, col)));
}

inline Column load_quants(const Iq4NlBlock& block, std::size_t col) {
  return from_int8(look_up(iq4_nl_codes, nibbles_of(block, col)));
}

template <class Block>
struct BlockPanel {
  using Element = Block;
  void start(const Block* panels, std::size_t panel, std::size_t cols) {
    at = panels + panel * (cols / block_cols);
    for (std::size_t p = 0; p < parts; ++p) scale.part[p] = Floats(0.0f);
  }
  Column column(std::size_t col) {
    const Block& block = at[col / block_cols];
    if (col % block_cols == 0) scale = load_f16(block.scale);
    Column weights = load_quants(block, col % block_cols);
    for (std::size_t p = 0; p < parts; ++p) weights.part[p] = weights.part[p] * scale.part[p];
    return weights;
  }
  const Block* at;
  Column scale;
};

inline void store_rows(float* y, std::size_t rows, const Column& sum) {
  if (rows >= panel_rows) {
    for (std::size_t p = 0; p < parts; ++p) sum.part[p].store_unaligned(y + p * lanes);
    return;
  }
  float padded[panel_rows];
  for (std::size_t p = 0; p < parts; ++p) sum.part[p].store_unaligned(padded + p * lanes);
  std::memcpy(y, padded, rows * sizeof(float));
}

// y for a few panels and tokens, all sums in registers. Sums run over the columns in order, one product at a time,
// which makes the result for a row and a token independent of the tile it is computed in.
template <class Panel, std::size_t panels, std::size_t tokens>
inline void multiply_tile(const Matmul<typename Panel::Element>& m, std::size_t first_panel, std::size_t first_token) {
  Panel weights[panels];
  Column sum[panels][tokens];
  for (std::size_t i = 0; i < panels; ++i) {
    weights[i].start(m.panels, first_panel + i, m.cols);
    for (std::size_t t = 0; t < tokens; ++t) {
      for (std::size_t p = 0; p < parts; ++p) sum[i][t].part[p] = Floats(0.0f);
    }
  }
  const float* x = m.x + first_token * m.x_stride;
  for (std::size_t col = 0; col < m.cols; ++col) {
    Column w[panels];
    for (std::size_t i = 0; i < panels; ++i) w[i] = weights[i].column(col);
    for (std::size_t t = 0; t < tokens; ++t) {
      const Floats value(x[t * m.x_stride + col]);
      for (std::size_t i = 0; i < panels; ++i) {
        for (std::size_t p = 0; p < parts; ++p) {
          sum[i][t].part[p] = xsimd::fma(value, w[i].part[p], sum[i][t].part[p]);
        }
      }
    }
  }
  for (std::size_t i = 0; i < panels; ++i) {
    const std::size_t row = (first_panel + i) * panel_rows;
    for (std::size_t t = 0; t < tokens; ++t) {
      store_rows(m.y + (first_token + t) * m.y_stride + row, m.rows - row, sum[i][t]);
    }
  }
}

// Tokens from `token` on, in tiles of `tokens`, then of half as many, down to one.
template <class Panel, std::size_t panels, std::size_t tokens>
inline void multiply_tokens(const Matmul<typename Panel::Element>& m, std::size_t panel, std::size_t token) {
  for (; token + tokens <= m.tokens; token += tokens) multiply_tile<Panel, panels, tokens>(m, panel, token);
  if constexpr (tokens > 1) multiply_tokens<Panel, panels, tokens / 2>(m, panel, token);
}

template <class Panel, std::size_t panels, std::size_t tokens>
inline void multiply_panels(const Matmul<typename Panel::Element>& m) {
  std::size_t panel = m.first_panel;
  for (; panel + panels <= m.last_panel; panel += panels) multiply_tokens<Panel, panels, tokens>(m, panel, 0);
  for (; panel < m.last_panel; ++panel) multiply_tokens<Panel, 1, tokens>(m, panel, 0);
}

template <class Panel>
void matmul(const Matmul<typename Panel::Element>& m) noexcept {
  if (m.tokens == 1) {
    multiply_panels<Panel, single_token_panels, 1>(m);
  } else {
    multiply_panels<Panel, tile_panels, tile_tokens>(m);
  }
}

inline float dot(const float* x, const float* y, std::size_t n) {
  Floats sum(0.0f);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) sum = xsimd::fma(load(x + i), load(y + i), sum);
  if (i < n) sum = xsimd::fma(load_tail(x + i, n - i, 0), load_tail(y + i, n - i, 0), sum);
  return sum_of(sum);
}

void rms_norm(const float* x, const float* weight, std::size_t n, float eps, float* out) noexcept {
  const float mean_square = dot(x, x, n) / static_cast<float>(n);
  const Floats scale(1.0f / __builtin_sqrtf(mean_square + eps));
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) (load(x + i) * scale * load(weight + i)).store_unaligned(out + i);
  if (i < n) store_tail(out + i, n - i, load_tail(x + i, n - i, 0) * scale * load_tail(weight + i, n - i, 0));
}

void rope_halves(float* head, const float* cos, const float* sin, std::size_t head_dim) noexcept {
  const std::size_t half = head_dim / 2;
  float* const low = head;
  float* const high = head + half;
  for (std::size_t i = 0; i < half; ++i) {
    const float a = low[i], b = high[i];
    low[i] = a * cos[i] - b * sin[i];
    high[i] = b * cos[i] + a * sin[i];
  }
}

void rope_adjacent_pairs(float* head, const float* cos, const float* sin, std::size_t head_dim) noexcept {
  for (std::size_t i = 0; i < head_dim / 2; ++i) {
    const float a = head[2 * i], b = head[2 * i + 1];
    head[2 * i] = a * cos[i] - b * sin[i];
    head[2 * i + 1] = a * sin[i] + b * cos[i];
  }
}

constexpr float lowest = -__FLT_MAX__;

inline float largest(const float* x, std::size_t n) {
  Floats most(lowest);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) most = xsimd::max(most, load(x + i));
  if (i < n) most = xsimd::max(most, load_tail(x + i, n - i, lowest));
  float each[lanes];
  most.store_unaligned(each);
  float result = each[0];
  for (std::size_t lane = 1; lane < lanes; ++lane) result = each[lane] > result ? each[lane] : result;
  return result;
}

void softmax(float* x, std::size_t n) noexcept {
  const Floats most(largest(x, n));
  Floats sum(0.0f);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const Floats e = xsimd::exp(load(x + i) - most);
    e.store_unaligned(x + i);
    sum = sum + e;
  }
  if (i < n) {
    // exp of the padding is exactly 0.
    const Floats e = xsimd::exp(load_tail(x + i, n - i, lowest) - most);
    store_tail(x + i, n - i, e);
    sum = sum + e;
  }
  const Floats scale(1.0f / sum_of(sum));
  update(x, x, n, [&](Floats e, Floats) { return e * scale; });
}

void add(float* x, const float* y, std::size_t n) noexcept {
  update(x, y, n, [](Floats a, Floats b) { return a + b; });
}

void add_scaled(float* x, const float* y, float scale, std::size_t n) noexcept {
  const Floats factor(scale);
  update(x, y, n, [&](Floats a, Floats b) { return xsimd::fma(factor, b, a); });
}

void attend_head(const AttendHead& a) noexcept {
  for (std::size_t j = 0; j < a.positions; ++j) {
    a.scores[j] = a.scale * dot(a.q, a.keys + j * a.head_dim, a.head_dim);
  }
  softmax(a.scores, a.positions);
  std::memset(a.out, 0, a.head_dim * sizeof(float));
  for (std::size_t j = 0; j < a.positions; ++j) add_scaled(a.out, a.values + j * a.head_dim, a.scores[j], a.head_dim);
}

inline Floats sigmoid(Floats x) {
  return Floats(1.0f) / (Floats(1.0f) + xsimd::exp(-x));
}

inline Floats gelu(Floats x) {
  return Floats(0.5f) * x * (Floats(1.0f) + xsimd::erf(x * Floats(0.70710678118654752f)));
}

// Hendrycks & Gimpel 2016, arXiv:1606.08415: the approximation by tanh.
inline Floats gelu_tanh(Floats x) {
  const Floats inner = Floats(0.79788456080286536f) * (x + Floats(0.044715f) * x * x * x);
  return Floats(0.5f) * x * (Floats(1.0f) + xsimd::tanh(inner));
}

template <class Function>
inline void activate_with(float* gate, const float* up, std::size_t n, Function f) {
  if (up) {
    update(gate, up, n, [&](Floats g, Floats u) { return f(g) * u; });
  } else {
    update(gate, gate, n, [&](Floats g, Floats) { return f(g); });
  }
}

void activate(Activation activation, float* gate, const float* up, std::size_t n) noexcept {
  switch (activation) {
    case Activation::silu:
      return activate_with(gate, up, n, [](Floats x) { return x * sigmoid(x); });
    case Activation::sigmoid:
      return activate_with(gate, up, n, [](Floats x) { return sigmoid(x); });
    case Activation::relu:
      return activate_with(gate, up, n, [](Floats x) { return xsimd::max(x, Floats(0.0f)); });
    case Activation::gelu:
      return activate_with(gate, up, n, [](Floats x) { return gelu(x); });
    case Activation::gelu_tanh:
      return activate_with(gate, up, n, [](Floats x) { return gelu_tanh(x); });
    case Activation::linear:
      return activate_with(gate, up, n, [](Floats x) { return x; });
  }
}

}  // namespace

#define MINIMIND_STRING_OF(name) #name
#define MINIMIND_STRING(name) MINIMIND_STRING_OF(name)

const Table MINIMIND_TABLE = {
    .name = MINIMIND_STRING(MINIMIND_TABLE),
    .matmul_f32 = matmul<F32Panel>,
    .matmul_f16 = matmul<HalfPanel<F16, load_f16>>,
    .matmul_bf16 = matmul<HalfPanel<Bf16, load_bf16>>,
    .matmul_q8_0 = matmul<BlockPanel<Q8Block>>,
    .matmul_q4_0 = matmul<BlockPanel<Q4Block>>,
    .matmul_iq4_nl = matmul<BlockPanel<Iq4NlBlock>>,
    .rms_norm = rms_norm,
    .rope_halves = rope_halves,
    .rope_adjacent_pairs = rope_adjacent_pairs,
    .attend_head = attend_head,
    .softmax = softmax,
    .activate = activate,
    .add = add,
    .add_scaled = add_scaled,
    .read = read,
    .multiply_add = multiply_add,
    .multiply_adds_per_round = chains * lanes,
};

}  // namespace minimind::kernels
