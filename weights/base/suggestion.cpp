#include "weights/base/suggestion.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "weights/base/text.h"

namespace minimind {
namespace {

// Returns the number of letters to insert, delete, replace or swap with their neighbour to make `to` of `from`.
std::size_t edit_distance(std::string_view from, std::string_view to) {
  const std::size_t columns = to.size() + 1;
  std::vector<std::size_t> table((from.size() + 1) * columns);
  const auto cell = [&](std::size_t i, std::size_t j) -> std::size_t& { return table[i * columns + j]; };
  for (std::size_t i = 0; i <= from.size(); ++i) {
    for (std::size_t j = 0; j <= to.size(); ++j) {
      if (i == 0 || j == 0) {
        cell(i, j) = i + j;
        continue;
      }
      const bool same = from[i - 1] == to[j - 1];
      std::size_t& distance = cell(i, j);
      distance = std::min({cell(i - 1, j) + 1, cell(i, j - 1) + 1, cell(i - 1, j - 1) + (same ? 0 : 1)});
      if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1]) {
        distance = std::min(distance, cell(i - 2, j - 2) + 1);
      }
    }
  }
  return table.back();
}

}  // namespace

std::string normalized(std::string_view word) {
  std::string result = lower_case(word);
  std::replace(result.begin(), result.end(), '_', '-');
  return result;
}

std::optional<std::string> nearest(std::string_view given, std::span<const std::string> choices) {
  constexpr std::size_t longest_word = 60, shortest_prefix = 2, shortest_stem = 4;
  const std::string word = normalized(given);
  if (word.empty() || word.size() > longest_word) return std::nullopt;
  std::optional<std::string> best;
  std::size_t best_distance = 1 + word.size() / 4;  // letters that may differ
  for (const std::string& choice : choices) {
    const std::string name = normalized(choice);
    if (name == word) return choice;
    const bool starts = (word.size() >= shortest_prefix && name.starts_with(word)) ||
                        (name.size() >= shortest_stem && word.starts_with(name));
    const std::size_t distance = starts ? 1 : edit_distance(word, name);
    if (distance >= name.size() || distance > best_distance || (best && distance == best_distance)) continue;
    best = choice;
    best_distance = distance;
  }
  return best;
}

std::string alternatives(std::span<const std::string> choices) {
  std::string text;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == choices.size() ? " or " : ", ") + choices[i];
  }
  return text;
}

std::string unknown_choice(std::string_view given, std::span<const std::string> choices) {
  const auto meant = nearest(given, choices);
  return fmt::format("{} is unknown, expected {}{}", quote(given), alternatives(choices),
                     meant ? fmt::format("; did you mean {}?", *meant) : "");
}

}  // namespace minimind
