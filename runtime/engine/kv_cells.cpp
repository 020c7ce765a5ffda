#include "runtime/engine/kv_cells.h"

#include <fmt/core.h>

#include <array>

#include "weights/base/error.h"
#include "weights/tensor/shape.h"

namespace minimind {
namespace {

// A cache line. A row of a panel that two pages have would be read before its second page is written, which makes the
// system provide that page twice and interrupt the other threads.
constexpr std::size_t cells_alignment = 64;

using kernels::block_cols;
using kernels::block_count;
using kernels::panel_count;
using kernels::panel_rows;

void round_to(const kernels::Table&, const float* x, std::size_t n, float* out) {
  std::copy_n(x, n, out);
}

void round_to(const kernels::Table& kernels, const float* x, std::size_t n, F16* out) {
  kernels.round_to_f16(x, n, out);
}

// NaN if it is too large for f16: an infinite scale could turn a key into a score of -inf, which softmax ignores.
F16 rounded_scale(const kernels::Table& kernels, float scale) {
  constexpr std::uint16_t infinity = 0x7C00, nan = 0x7E00;
  F16 rounded;
  kernels.round_to_f16(&scale, 1, &rounded);
  return rounded.bits == infinity ? F16{nan} : rounded;
}

template <class Element>
void put_in(const kernels::Table& kernels, const KvPanels<Element>& panels, std::size_t position, const float* key,
            const float* value) {
  for (std::size_t first = 0; first < panels.head_dim; first += panel_rows) {
    const std::size_t count = std::min(panel_rows, panels.head_dim - first);
    Element rounded[panel_rows];
    round_to(kernels, key + first, count, rounded);
    for (std::size_t i = 0; i < count; ++i) *panels.key(position, first + i) = rounded[i];
    round_to(kernels, value + first, count, panels.value(position, first));
  }
}

void put_in(const kernels::Table& kernels, const KvPanels<std::int8_t>& panels, std::size_t position, const float* key,
            const float* value) {
  for (std::size_t block = 0; block < panels.blocks(); ++block) {
    const std::size_t first = block * block_cols, width = panels.width(block);
    kernels::ActivationBlock rounded;
    kernels.quantize(key + first, width, &rounded);
    panels.key_block(position, block).scale[position % panel_rows] = rounded_scale(kernels, rounded.scale).bits;
    for (std::size_t i = 0; i < block_cols; i += kernels::group_cols) {
      std::copy_n(rounded.quant + i, kernels::group_cols, panels.key(position, first + i));
    }
    kernels.quantize(value + first, width, &rounded);
    panels.value_scales_of(block)[position] = rounded_scale(kernels, rounded.scale);
    for (std::size_t i = 0; i < width; ++i) *panels.value(position, first + i) = rounded.quant[i];
  }
}

template <class Number>
std::span<std::byte> bytes_of(Number* begin, std::size_t count) {
  return std::as_writable_bytes(std::span(begin, count));
}

template <class Element>
std::vector<std::span<std::byte>> parts_of(const KvPanels<Element>& panels, Range positions) {
  const std::size_t first = positions.begin, size = positions.size();
  std::vector<std::span<std::byte>> parts{
      bytes_of(panels.key(first, 0), panel_count(size) * panels.head_dim * panel_rows)};
  for (std::size_t i = 0; i < panels.head_dim; i += panel_rows) {
    parts.push_back(bytes_of(panels.value(first, i), size * panel_rows));
  }
  return parts;
}

std::vector<std::span<std::byte>> parts_of(const KvPanels<std::int8_t>& panels, Range positions) {
  const std::size_t first = positions.begin, size = positions.size();
  std::vector<std::span<std::byte>> parts{bytes_of(&panels.key_block(first, 0), panel_count(size) * panels.blocks())};
  for (std::size_t panel = 0; panel < panel_count(panels.head_dim); ++panel) {
    kernels::I8Block* const values = panels.values + panel * panels.values_panel_stride() + first / block_cols;
    parts.push_back(bytes_of(values, block_count(size)));
  }
  for (std::size_t block = 0; block < panels.blocks(); ++block) {
    parts.push_back(bytes_of(panels.value_scales_of(block) + first, size));
  }
  return parts;
}

}  // namespace

std::size_t KvShape::bytes_per_position() const {
  const std::size_t value_rows = panel_count(head_dim) * panel_rows;  // values fill whole panels
  std::size_t of_a_head = (head_dim + value_rows) * (type == KvType::f32 ? sizeof(float) : sizeof(F16));
  if (type == KvType::q8_0) {
    of_a_head = block_count(head_dim) * (sizeof(kernels::Q8Block) / panel_rows + sizeof(F16)) + value_rows;
  }
  return layers * kv_heads * of_a_head;
}

KvCells::KvCells(const KvShape& shape, std::size_t capacity)
    : shape_(shape), capacity_(capacity), positions_(block_count(capacity) * block_cols), head_bytes_(0) {
  const auto bytes = element_count(std::array{positions_, shape.bytes_per_position()});
  if (capacity <= positions_ && bytes) {
    head_bytes_ = *bytes / (shape.layers * shape.kv_heads);
    // calloc does not touch the pages, so a long context uses no memory until it is filled.
    std::size_t size = *bytes + cells_alignment;
    memory_.reset(static_cast<std::byte*>(size > *bytes ? std::calloc(size, 1) : nullptr));
    void* begin = memory_.get();
    cells_ = static_cast<std::byte*>(std::align(cells_alignment, *bytes, begin, size));
  }
  if (memory_) return;
  throw Error(
      fmt::format("a context of {} positions requires {:.1f} GB for keys and values, which are unavailable; "
                  "use a smaller context",
                  capacity, 1e-9 * static_cast<double>(shape.bytes_per_position()) * static_cast<double>(capacity)),
      Setting::context);
}

template <class Element>
KvPanels<Element> KvCells::panels_at(std::byte* head) const {
  auto* const keys = reinterpret_cast<Element*>(head);
  return {keys, keys + positions_ * shape_.head_dim, shape_.head_dim, positions_};
}

template <>
KvPanels<std::int8_t> KvCells::panels_at(std::byte* head) const {
  const std::size_t head_dim = shape_.head_dim;
  auto* const keys = reinterpret_cast<kernels::Q8Block*>(head);
  auto* const values = reinterpret_cast<kernels::I8Block*>(keys + positions_ / panel_rows * block_count(head_dim));
  auto* const scales = reinterpret_cast<F16*>(values + panel_count(head_dim) * (positions_ / block_cols));
  return {keys, values, scales, head_dim, positions_};
}

KvCells::Panels KvCells::panels(std::size_t layer, std::size_t kv_head) const {
  std::byte* const head = cells_ + (layer * shape_.kv_heads + kv_head) * head_bytes_;
  if (shape_.type == KvType::f16) return panels_at<F16>(head);
  if (shape_.type == KvType::q8_0) return panels_at<std::int8_t>(head);
  return panels_at<float>(head);
}

void KvCells::put(const kernels::Table& kernels, std::size_t layer, std::size_t kv_head, std::size_t position,
                  const float* key, const float* value) {
  std::visit([&](const auto& panels) { put_in(kernels, panels, position, key, value); }, panels(layer, kv_head));
}

std::vector<std::span<std::byte>> KvCells::parts(std::size_t layer, std::size_t kv_head, Range positions) const {
  assert(positions.begin % block_cols == 0 && positions.end <= capacity_);
  return std::visit([&](const auto& panels) { return parts_of(panels, positions); }, panels(layer, kv_head));
}

}  // namespace minimind
