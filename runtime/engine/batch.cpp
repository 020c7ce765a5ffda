#include "runtime/engine/batch.h"

#include <algorithm>
#include <cassert>

namespace minimind {

Batch::Batch(std::size_t max_tokens, std::size_t tile_rows) : tile_rows_(tile_rows) {
  rows_.reserve(max_tokens);
  tiles_.reserve(max_tokens);
}

void Batch::assign(std::span<const Piece> pieces) {
  rows_.clear();
  tiles_.clear();
  for (const Piece& piece : pieces) add(piece, {0, piece.tokens.size() - piece.logit_rows});
  first_requested_ = rows_.size();
  requested_tiles_ = tiles_.size();
  for (const Piece& piece : pieces) add(piece, {piece.tokens.size() - piece.logit_rows, piece.tokens.size()});
  single_tokens_ = rows_.size() == pieces.size();
}

void Batch::add(const Piece& piece, Range tokens) {
  KvCache* const cache = &piece.context->cache();
  const std::size_t start = piece.context->size();
  assert(!piece.tokens.empty() && tokens.begin <= tokens.end && start + tokens.end <= piece.context->capacity());
  for (std::size_t first = tokens.begin; first < tokens.end; first += tile_rows_) {
    const std::size_t last = std::min(first + tile_rows_, tokens.end);
    tiles_.push_back({{rows_.size(), rows_.size() + last - first}, start + first, cache});
    for (std::size_t i = first; i < last; ++i) rows_.push_back({piece.tokens[i], start + i, cache});
  }
}

}  // namespace minimind
