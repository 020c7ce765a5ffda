#pragma once

// Included by the products of matrices only: divides a product into tiles of a few panels and tokens, whose
// sums are in registers, and prefetches weights.

#include <cstddef>
#include <type_traits>

namespace minimind::kernels {
namespace {

constexpr std::size_t smaller(std::size_t a, std::size_t b) {
  return a < b ? a : b;
}

// Which weights a tile prefetches while it multiplies. The hardware follows a stream only to the end of its page; with
// this prefetch, weights arrive as fast as any loop can read them.
enum class Prefetch {
  none,         // the weights are in a cache: other tokens have just used them
  ahead,        // those that it uses a little later, for tiles that use each weight once
  next_panels,  // those of the next panels, or a part of them, for tiles that use the same weights one after the other
};

// Which of the tiles that use the same weights.
struct TileIndex {
  std::size_t index, count;
};

// How many bytes of weights ahead, in all panels of a tile together, unless measurements favour another distance.
constexpr std::size_t prefetch_distance = 8192;

// Prefetches elements, columns or blocks, of the `panels` panels that a tile multiplies at once, and then of the panels
// after them, in the order in which they will be used.
template <Prefetch prefetch, std::size_t panels, std::size_t element_bytes, std::size_t distance = prefetch_distance>
class Prefetcher {
 public:
  // For panels of `elements` elements, one every `stride` elements.
  Prefetcher(std::size_t elements, std::size_t stride) {
    constexpr std::size_t lead = distance / (panels * element_bytes);
    const std::size_t ahead = prefetch == Prefetch::next_panels || lead > elements ? elements : lead;
    in_panel_ = elements - ahead;
    to_ahead_ = ahead;
    to_next_panels_ = panels * stride - in_panel_;
  }

  // Called before element i of a panel, at `at`, is used. Addresses after the last panel do no harm.
  void fetch(const void* at, std::size_t i) const {
    if constexpr (prefetch == Prefetch::none) return;
    const char* const ahead =
        static_cast<const char*>(at) + (i < in_panel_ ? to_ahead_ : to_next_panels_) * element_bytes;
    for (std::size_t line = 0; line < element_bytes; line += 64) __builtin_prefetch(ahead + line);
  }

 private:
  std::size_t in_panel_;  // the first elements of a panel, for which those ahead are in the same panel
  std::size_t to_ahead_;
  std::size_t to_next_panels_;
};

// Calls use(integral_constant) with n as a constant; n is from `least` to `most`.
template <std::size_t least, std::size_t most, class Use>
inline void with_constant(std::size_t n, const Use& use) {
  if constexpr (least < most) {
    if (n < most) return with_constant<least, most - 1>(n, use);
  }
  use(std::integral_constant<std::size_t, most>());
}

// For tokens that fit in one tile: each weight is read once.
template <class Tile, std::size_t panels, std::size_t tokens, class M>
inline void multiply_in_one_tile(const M& m, std::size_t& panel) {
  for (; panel + panels <= m.last_panel; panel += panels) {
    Tile::template multiply<panels, tokens, Prefetch::ahead>(m, panel, 0, {0, 1});
  }
}

// Part `i` of `count` parts of `size`, which differ by one at most.
struct Part {
  std::size_t first, size;
};
inline Part part_of(std::size_t size, std::size_t i, std::size_t count) {
  const std::size_t first = size * i / count;
  return {first, size * (i + 1) / count - first};
}
constexpr std::size_t parts_for(std::size_t size, std::size_t most) {
  return (size + most - 1) / most;
}

// Divides the tokens evenly among as few tiles as hold them, because a tile of few tokens costs almost as much as a
// full one. Calls use(tile, first token, its tokens as a constant, at least `least`) for each tile.
template <class Tile, std::size_t least = (Tile::most_tokens + 1) / 2, class Use>
inline void for_each_tile(std::size_t tokens, const Use& use) {
  const std::size_t tiles = parts_for(tokens, Tile::most_tokens);
  for (std::size_t i = 0; i < tiles; ++i) {
    const Part part = part_of(tokens, i, tiles);
    with_constant<least, Tile::most_tokens>(part.size, [&](auto count) {
      use(TileIndex{i, tiles}, part.first, count);
    });
  }
}

template <class Tile, class M>
inline void multiply_in_several_tiles(const M& m, std::size_t panel) {
  constexpr std::size_t panels = Tile::most_panels, tiles = parts_for(Tile::most_tokens_alone + 1, Tile::most_tokens);
  // The tokens of a tile if `tiles` tiles, or one more, have as few as possible.
  constexpr std::size_t least =
      smaller((Tile::most_tokens_alone + 1) / tiles, (tiles * Tile::most_tokens + 1) / (tiles + 1));
  for (; panel + panels <= m.last_panel; panel += panels) {
    for_each_tile<Tile, least>(m.tokens, [&](TileIndex tile, std::size_t first, auto tokens) {
      if (Tile::prefetching_tiles == SIZE_MAX || tile.index < Tile::prefetching_tiles) {  // constant: no other code
        Tile::template multiply<panels, tokens, Prefetch::next_panels>(m, panel, first, tile);
      } else {
        Tile::template multiply<panels, tokens, Prefetch::none>(m, panel, first, tile);
      }
    });
  }
  // The last panels use the functions of tokens that fit in one tile: the program is smaller.
  if constexpr (panels > 1) {
    for (; panel < m.last_panel; ++panel) {
      for_each_tile<Tile, least>(m.tokens, [&](TileIndex, std::size_t first, auto tokens) {
        Tile::template multiply<1, tokens, Prefetch::ahead>(m, panel, first, {0, 1});
      });
    }
  }
}

// Computes the product m. `Tile` has
//   most_panels, most_tokens   its size if several tiles hold the tokens
//   prefetching_tiles          how many of these fetch a part of the next panels
//   most_tokens_alone          how many tokens one tile may hold if it holds all
//   panels_for(tokens)         its panels then, unless one_panel_is_faster(m)
//   multiply<panels, tokens, prefetch>(m, panel, token, index)   computes y for the tile that starts there
template <class Tile, class M>
inline void multiply_in_tiles(const M& m) {
  std::size_t panel = m.first_panel;
  if (m.tokens <= Tile::most_tokens_alone) {
    with_constant<1, Tile::most_tokens_alone>(m.tokens, [&](auto tokens) {
      constexpr std::size_t panels = Tile::panels_for(tokens);
      if (panels > 1 && !Tile::one_panel_is_faster(m)) multiply_in_one_tile<Tile, panels, tokens>(m, panel);
      multiply_in_one_tile<Tile, 1, tokens>(m, panel);
    });
  } else {
    multiply_in_several_tiles<Tile>(m, panel);
  }
}

}  // namespace
}  // namespace minimind::kernels
