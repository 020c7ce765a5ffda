#include "runtime/engine/batch.h"

#include <algorithm>
#include <cassert>
#include <functional>

namespace minimind {
namespace {

// Orders texts so that those with the same first cells are next to each other.
bool by_cells(const KvCache& a, const KvCache& b) {
  const auto cells = [](const KvCache::Part& part) { return part.cells.get(); };
  return std::ranges::lexicographical_compare(a.parts(), b.parts(), std::less(), cells, cells);
}

bool have_common_cells(const KvCache& a, const KvCache& b) {
  return a.parts().front().cells == b.parts().front().cells;
}

}  // namespace

Batch::Batch(std::size_t max_tokens, std::size_t tile_rows) : tile_rows_(tile_rows) {
  rows_.reserve(max_tokens);
  strips_.reserve(max_tokens);
  order_.reserve(max_tokens);
  tiles_.reserve(max_tokens);
  parts_.reserve(4 * max_tokens);  // of texts that have more parts than usual, the vector grows
}

void Batch::assign(std::span<const Piece> pieces) {
  rows_.clear();
  strips_.clear();
  order_.clear();
  tiles_.clear();
  parts_.clear();
  for (const Piece& piece : pieces) add_rows(piece, {0, piece.tokens.size() - piece.logit_rows});
  add_tiles();
  first_requested_ = rows_.size();
  requested_tiles_ = tiles_.size();
  for (const Piece& piece : pieces) add_rows(piece, {piece.tokens.size() - piece.logit_rows, piece.tokens.size()});
  add_tiles();
  single_tokens_ = rows_.size() == pieces.size();
}

void Batch::add_rows(const Piece& piece, Range tokens) {
  KvCache* const cache = &piece.context->cache();
  const std::size_t start = piece.context->size();
  assert(!piece.tokens.empty() && tokens.begin <= tokens.end && start + tokens.end <= piece.context->capacity());
  for (std::size_t first = tokens.begin; first < tokens.end; first += tile_rows_) {
    const std::size_t last = std::min(first + tile_rows_, tokens.end);
    strips_.push_back({{rows_.size(), rows_.size() + last - first}, cache});
    for (std::size_t i = first; i < last; ++i) rows_.push_back({piece.tokens[i], start + i, cache});
  }
}

// Divides the strips among tiles: each into one, together with others of texts that have the same first cells.
void Batch::add_tiles() {
  std::ranges::sort(strips_, [](const Strip& a, const Strip& b) {
    if (by_cells(*a.cache, *b.cache)) return true;
    return !by_cells(*b.cache, *a.cache) && a.rows.begin < b.rows.begin;
  });
  for (std::size_t first = 0, last; first < strips_.size(); first = last) {
    std::size_t rows = strips_[first].rows.size();
    for (last = first + 1; last < strips_.size(); ++last) {
      const Strip& strip = strips_[last];
      rows += strip.rows.size();
      if (rows > tile_rows_ || !have_common_cells(*strip.cache, *strips_[first].cache)) break;
    }
    add_tile(std::span(strips_).subspan(first, last - first));
  }
  strips_.clear();
}

void Batch::add_tile(std::span<const Strip> strips) {
  const std::size_t first = order_.size();
  for (const Strip& strip : strips) {
    for (std::size_t row = strip.rows.begin; row < strip.rows.end; ++row) order_.push_back(row);
  }
  Tile tile{std::span(order_).subspan(first), {parts_.size(), parts_.size()}};
  add_parts(tile, {0, tile.rows.size()}, 0);
  tile.parts.end = parts_.size();
  tiles_.push_back(tile);
}

// Adds the parts from position `first` on that these rows of the tile see.
void Batch::add_parts(const Tile& tile, Range rows, std::size_t first) {
  const auto row = [&](std::size_t i) -> const Row& { return rows_[tile.rows[i]]; };
  for (std::size_t end; rows.begin < rows.end; rows.begin = end) {
    end = rows.begin + 1;
    if (row(rows.begin).position < first) continue;
    const KvCache::Part& part = row(rows.begin).cache->part_of(first);
    std::size_t last = row(rows.begin).position;
    for (; end < rows.end && row(end).position >= first && row(end).cache->part_of(first).cells == part.cells; ++end) {
      last = std::max(last, row(end).position);
    }
    const std::size_t seen = std::min(last + 1, part.positions.end);
    parts_.push_back({{rows.begin, end}, {first, seen}, part.cells.get()});
    if (last >= seen) add_parts(tile, {rows.begin, end}, seen);
  }
}

}  // namespace minimind
