#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/fuzz/mutate.h"

namespace minimind {

// Changes JSON into other JSON: values, names, order, nesting.
class JsonMutator {
 public:
  using Json = nlohmann::ordered_json;

  // `words` are names and strings that mean something to the reader.
  JsonMutator(Dice& dice, std::span<const std::string_view> words) : dice_(dice), words_(words) {}

  // Changes one to three values; nothing if `text` is not JSON, or so deep that nlohmann's own recursion would count.
  std::optional<std::string> change(std::string_view text) {
    if (is_deep(text)) return std::nullopt;
    Json root = Json::parse(text, nullptr, false);
    if (root.is_discarded()) return std::nullopt;
    for (std::size_t i = dice_.below(3) + 1; i-- > 0;) change_one(root);
    return root.dump(-1, ' ', dice_.one_in(4), Json::error_handler_t::replace);
  }

  void change_one(Json& root) {
    std::vector<Json*> nodes{&root};
    for (std::size_t i = 0; i < nodes.size() && nodes.size() < most_nodes; ++i) {
      for (Json& child : *nodes[i]) {
        if (nodes[i]->is_structured()) nodes.push_back(&child);
      }
    }
    Json& node = *dice_.pick(nodes);
    const Json other = *dice_.pick(nodes);
    if (dice_.one_in(3) || !node.is_structured()) return change_value(node, other);
    node.is_array() ? change_array(node, other) : change_object(node, other);
  }

 private:
  static constexpr std::size_t most_nodes = 5000, most_depth = 150;

  static bool is_deep(std::string_view text) {
    std::size_t depth = 0;
    for (const char c : text) {
      if (c == '[' || c == '{') ++depth;
      if ((c == ']' || c == '}') && depth > 0) --depth;
      if (depth > most_depth) return true;
    }
    return false;
  }

  std::string word() { return words_.empty() ? "a" : std::string(dice_.pick(words_)); }

  Json scalar() {
    switch (dice_.below(7)) {
      case 0:
        return nullptr;
      case 1:
        return dice_.one_in(2);
      case 2:
        return dice_.number();
      case 3:
        return static_cast<std::int64_t>(0 - dice_.number());
      case 4:
        return static_cast<double>(dice_.number()) / 10;
      case 5:
        return std::string(dice_.below(40), 'a');
      default:
        return word();
    }
  }

  void change_value(Json& node, const Json& other) {
    if (node.is_string() && !dice_.one_in(3)) {
      auto text = node.get<std::string>();
      mutate_bytes(text);
      node = text;
    } else if (dice_.one_in(4)) {
      const Json inner = node;
      node = dice_.one_in(2) ? Json::array({inner}) : Json{{word(), inner}};
    } else if (dice_.one_in(2)) {
      node = other;
    } else {
      node = dice_.one_in(8) ? (dice_.one_in(2) ? Json::array() : Json::object()) : scalar();
    }
  }

  void change_array(Json& node, const Json& other) {
    const std::size_t at = dice_.below(node.size() + 1);
    if (at < node.size() && dice_.one_in(3)) {
      node.erase(at);
    } else if (at < node.size() && dice_.one_in(2)) {
      std::swap(node[at], node[dice_.below(node.size())]);
    } else {
      const Json item = dice_.one_in(2) ? other : scalar();
      for (std::size_t i = dice_.one_in(8) ? dice_.below(100) + 1 : 1; i-- > 0;) {
        node.insert(node.begin() + static_cast<std::ptrdiff_t>(at), item);
      }
    }
  }

  void change_object(Json& node, const Json& other) {
    if (node.empty() || dice_.one_in(3)) {
      node[word()] = dice_.one_in(2) ? other : scalar();
      return;
    }
    const auto item = std::next(node.begin(), static_cast<std::ptrdiff_t>(dice_.below(node.size())));
    const std::string name = item.key();
    const Json value = item.value();
    if (dice_.one_in(3)) {
      node.erase(name);
    } else if (dice_.one_in(2)) {
      node.erase(name);
      std::string changed = dice_.one_in(2) ? word() : name;
      if (changed == name) mutate_bytes(changed);
      node[changed] = value;
    } else {
      node[name] = other;
    }
  }

  Dice& dice_;
  std::span<const std::string_view> words_;
};

// The body of LLVMFuzzerCustomMutator for a target whose input is JSON after `before` bytes.
inline std::size_t mutate_json(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed,
                               std::span<const std::string_view> words, std::size_t before = 0) {
  return mutate_structure(data, size, max_size, seed,
                          [&](std::string_view input, Dice& dice) -> std::optional<std::string> {
                            if (input.size() <= before) return std::nullopt;
                            std::string start(input.substr(0, before));
                            if (before > 0 && dice.one_in(8))
                              start[dice.below(before)] = static_cast<char>(dice.below(256));
                            const auto changed = JsonMutator(dice, words).change(input.substr(before));
                            if (!changed) return std::nullopt;
                            return start + *changed;
                          });
}

}  // namespace minimind
