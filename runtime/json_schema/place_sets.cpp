#include "runtime/json_schema/place_sets.h"

#include <algorithm>

namespace minimind {
namespace {

PlaceSets::Least least_of(const PlaceSets::Least& a, const PlaceSets::Least& b) {
  return {std::min(a.any, b.any), std::min(a.needed, b.needed)};
}

}  // namespace

PlaceSets::Set PlaceSets::leaf(std::size_t place, Least cost) {
  if (leaves_[place] == 0) {
    leaves_[place] = static_cast<Set>(nodes_.size());
    nodes_.push_back({cost, 0, 0, 1, cost.any});
  }
  return leaves_[place];
}

// The halves of an inner node are those of its part of the places, so that no two parts have equal ones.
PlaceSets::Set PlaceSets::join(Set left, Set right) {
  if (left == 0 && right == 0) return 0;
  const auto [place, added] = joined_.try_emplace(std::uint64_t{left} << 32 | right, static_cast<Set>(nodes_.size()));
  if (added) {
    const Node &a = nodes_[left], &b = nodes_[right];
    nodes_.push_back({least_of(a.least, b.least), left, right, a.size + b.size, a.sum + b.sum});
  }
  return place->second;
}

PlaceSets::Set PlaceSets::all(const std::vector<Least>& costs, std::size_t begin, std::size_t end) {
  if (begin == end) return 0;
  if (end - begin == 1) return leaf(begin, costs[begin]);
  const Set left = all(costs, begin, middle(begin, end));
  return join(left, all(costs, middle(begin, end), end));
}

PlaceSets::Set PlaceSets::replaced(Set set, std::size_t begin, std::size_t end, std::size_t place, Set leaf) {
  if (end - begin == 1) return leaf;
  const Node node = nodes_[set];
  const std::size_t half = middle(begin, end);
  if (place < half) return join(replaced(node.left, begin, half, place, leaf), node.right);
  return join(node.left, replaced(node.right, half, end, place, leaf));
}

bool PlaceSets::has(Set set, std::size_t place) const {
  for (std::size_t begin = 0, end = places_; set != 0 && end - begin > 1;) {
    const std::size_t half = middle(begin, end);
    set = place < half ? nodes_[set].left : nodes_[set].right;
    (place < half ? end : begin) = half;
  }
  return set != 0;
}

PlaceSets::Least PlaceSets::least(Set set, std::size_t begin, std::size_t end, std::size_t from, std::size_t to) const {
  if (set == 0 || to <= begin || end <= from) return {};
  if (from <= begin && end <= to) return nodes_[set].least;
  const std::size_t half = middle(begin, end);
  return least_of(least(nodes_[set].left, begin, half, from, to), least(nodes_[set].right, half, end, from, to));
}

std::uint64_t PlaceSets::sum_of_first(Set set, std::size_t count) const {
  std::uint64_t sum = 0;
  while (count > 0 && count < nodes_[set].size) {
    const Node& left = nodes_[nodes_[set].left];
    const bool more = count >= left.size;
    set = more ? nodes_[set].right : nodes_[set].left;
    if (!more) continue;
    sum += left.sum;
    count -= left.size;
  }
  return count == 0 ? sum : sum + nodes_[set].sum;
}

}  // namespace minimind
