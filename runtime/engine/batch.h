#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/engine/context.h"
#include "runtime/engine/matrix.h"

namespace minimind {

// The tokens of one text in a batch, at least one. They follow the tokens in the context and must fit in it. The logits
// of the last `logit_rows` tokens are requested.
struct Piece {
  Context* context;
  std::span<const std::int32_t> tokens;
  std::size_t logit_rows = 0;
};

// A batch of pieces of several texts as the rows of one matrix: first the tokens whose logits are not requested, then
// those whose logits are, both in the order of the pieces. So the rows that the last layer continues are contiguous.
// Products see only rows; RoPE, the KV cache and attention also see the text of each row.
class Batch {
 public:
  struct Row {
    std::int32_t token;
    std::size_t position;
    KvCache* cache;
  };
  // Cells that some rows of a tile see: at least a position of them, and the last of these rows all of them.
  struct TilePart {
    Range rows;       // of the tile
    Range positions;  // of the rows' texts
    const KvCells* cells;
  };
  // Rows whose queries attention multiplies together: those of one text, in order, or of texts that have the same first
  // cells. The parts of each row are in the order of their positions.
  struct Tile {
    std::span<const std::size_t> rows;  // of the batch
    Range parts;
  };

  // For up to `max_tokens` rows in tiles of up to `tile_rows`.
  Batch(std::size_t max_tokens, std::size_t tile_rows);

  // Replaces the rows. Each context must be in one piece only.
  void assign(std::span<const Piece> pieces);

  std::span<const Row> rows() const { return rows_; }
  std::span<const Row> rows(Range range) const { return rows().subspan(range.begin, range.size()); }
  Range all() const { return {0, rows_.size()}; }
  Range requested() const { return {first_requested_, rows_.size()}; }

  // Returns the tiles of the rows from `first` on, which must be the start of all() or requested().
  std::span<const Tile> tiles(std::size_t first) const {
    return std::span(tiles_).subspan(first == 0 ? 0 : requested_tiles_);
  }
  std::span<const TilePart> parts_of(const Tile& tile) const {
    return std::span(parts_).subspan(tile.parts.begin, tile.parts.size());
  }

  // Whether every piece is a single token.
  bool single_tokens() const { return single_tokens_; }

 private:
  // Consecutive rows of one text.
  struct Strip {
    Range rows;
    const KvCache* cache;
  };
  void add_rows(const Piece& piece, Range tokens);
  void add_tiles();
  void add_tile(std::span<const Strip> strips);
  void add_parts(const Tile& tile, Range rows, std::size_t first);

  std::size_t tile_rows_;
  std::vector<Row> rows_;
  std::vector<Strip> strips_;       // of the rows that are in no tile yet
  std::vector<std::size_t> order_;  // the rows in the order of the tiles
  std::vector<Tile> tiles_;
  std::vector<TilePart> parts_;  // of all tiles
  std::size_t first_requested_ = 0;
  std::size_t requested_tiles_ = 0;  // the index of the first
  bool single_tokens_ = true;
};

}  // namespace minimind
