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
  // Rows of one text, in order, whose queries attention multiplies together.
  struct Tile {
    Range rows;
    std::size_t first_position;
    KvCache* cache;
  };

  // For up to `max_tokens` rows in tiles of up to `tile_rows`.
  Batch(std::size_t max_tokens, std::size_t tile_rows);

  // Replaces the rows. Each context must be in one piece only.
  void assign(std::span<const Piece> pieces);

  std::span<const Row> rows() const { return rows_; }
  Range all() const { return {0, rows_.size()}; }
  Range requested() const { return {first_requested_, rows_.size()}; }

  // Returns the tiles of the rows from `first` on, which must be the start of all() or requested().
  std::span<const Tile> tiles(std::size_t first) const {
    return std::span(tiles_).subspan(first == 0 ? 0 : requested_tiles_);
  }

  // Whether every piece is a single token. Then each row is a text and a tile.
  bool single_tokens() const { return single_tokens_; }

 private:
  void add(const Piece& piece, Range tokens);

  std::size_t tile_rows_;
  std::vector<Row> rows_;
  std::vector<Tile> tiles_;
  std::size_t first_requested_ = 0;
  std::size_t requested_tiles_ = 0;  // the index of the first
  bool single_tokens_ = true;
};

}  // namespace minimind
