#include "runtime/grammar/grammar_items.h"

#include <algorithm>

namespace minimind {
namespace {

std::uint64_t mixed(std::uint64_t value) {
  value *= 0x9E3779B97F4A7C15u;
  return value ^ value >> 29;
}

std::uint64_t hash(std::span<const GrammarItem> items) {
  std::uint64_t value = items.size();
  for (const GrammarItem& item : items) value = mixed(value ^ (std::uint64_t{item.symbol} << 32 | item.frame));
  return value;
}

}  // namespace

std::size_t GrammarItemLists::slot_of(std::span<const GrammarItem> items) const {
  std::size_t slot = hash(items) & (slots_.size() - 1);
  while (slots_[slot] != none && !std::ranges::equal((*this)[slots_[slot]], items)) {
    slot = (slot + 1) & (slots_.size() - 1);
  }
  return slot;
}

std::uint32_t GrammarItemLists::intern(std::span<const GrammarItem> items) {
  const std::size_t slot = slot_of(items);
  if (slots_[slot] != none) return slots_[slot];
  const auto list = static_cast<std::uint32_t>(size());
  slots_[slot] = list;
  items_.insert(items_.end(), items.begin(), items.end());
  begins_.push_back(items_.size());
  if (2 * size() > slots_.size()) grow();
  return list;
}

void GrammarItemLists::grow() {
  slots_.assign(2 * slots_.size(), none);
  for (std::uint32_t list = 0; list < size(); ++list) slots_[slot_of((*this)[list])] = list;
}

void GrammarItemLists::clear() {
  *this = GrammarItemLists();
}

bool GrammarItemSet::insert(GrammarItem item) {
  const std::uint64_t key = std::uint64_t{item.symbol} << 32 | item.frame;
  std::size_t slot = mixed(key) & (slots_.size() - 1);
  for (; slots_[slot] != none; slot = (slot + 1) & (slots_.size() - 1)) {
    if (slots_[slot] == key) return false;
  }
  slots_[slot] = key;
  keys_.push_back(key);
  if (2 * keys_.size() > slots_.size()) {
    slots_.assign(2 * slots_.size(), none);
    for (const std::uint64_t known : keys_) place(known);
  }
  return true;
}

void GrammarItemSet::place(std::uint64_t key) {
  std::size_t slot = mixed(key) & (slots_.size() - 1);
  while (slots_[slot] != none) slot = (slot + 1) & (slots_.size() - 1);
  slots_[slot] = key;
}

void GrammarItemSet::clear() {
  if (slots_.size() > 1024 && 32 * keys_.size() < slots_.size()) slots_.resize(64);
  std::fill(slots_.begin(), slots_.end(), none);
  keys_.clear();
}

}  // namespace minimind
