#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "weights/base/error.h"
#include "weights/base/text.h"

namespace minimind {

// Builds a value from the events of nlohmann's parser, in time linear in the text but for the sorting of keys. The
// library's own builders are not: with a callback, they go through an object again after each of its members, and those
// of an ordered_json look for each key among all before it. Throws Error, starting with `source`.
template <class Json>
class JsonBuilder : public nlohmann::json_sax<Json> {
 public:
  struct Limits {
    int levels;          // of nesting
    std::size_t memory;  // bytes that the values may take
    std::string_view wanted;
    bool repeated_keys = true;  // false: they are rejected; true: the last value counts
    bool keeps_large = false;   // integers of more than 64 bits, as binary values of their digits
  };
  using Use = std::function<void(const std::string& of, const std::string& name, const Json& value)>;

  // With `use`, the members of the outermost object are given to it, one by one, and not kept; or, if `inside` names
  // one of them, what the objects and arrays in that have, of which `of` is the name.
  JsonBuilder(std::string_view text, const std::string& source, Limits limits, Use use = {},
              std::string_view inside = {})
      : text_(text), source_(source), limits_(limits), use_(std::move(use)), inside_(inside) {}

  Json build() {
    // Json::sax_parse() would bring the library's readers of five binary formats.
    nlohmann::detail::parser<Json, Characters>(Characters{this}).sax_parse(this);
    return std::move(root_);
  }

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(std::int64_t value) override { return put(value); }
  bool number_unsigned(std::uint64_t value) override { return put(value); }
  bool number_float(double value, const std::string& text) override {
    const bool is_large_integer = text.find_first_of(".eE") == std::string::npos;
    return put(limits_.keeps_large && is_large_integer ? Json::binary({text.begin(), text.end()}) : Json(value));
  }
  bool string(std::string& value) override {
    take_memory(size_of(value));
    return put(std::move(value));
  }
  bool binary(typename Json::binary_t&) override { return false; }

  bool start_object(std::size_t) override { return open(Json::value_t::object, sizeof(typename Json::object_t)); }
  bool start_array(std::size_t) override { return open(Json::value_t::array, sizeof(typename Json::array_t)); }
  bool key(std::string& name) override {
    take_memory(size_of(name) + member_overhead);
    open_.back().name = std::move(name);
    return true;
  }
  bool end_array() override { return close(std::move(open_.back().value)); }
  bool end_object() override { return close(finished(open_.back())); }

  bool parse_error(std::size_t taken, const std::string&, const nlohmann::detail::exception& error) override {
    constexpr int number_out_of_range = 406;
    const std::size_t position = taken + indentation_;
    if (error.id == number_out_of_range) {
      throw Error(
          fmt::format("{}: holds a number that is too large for a double before byte {}, expected a finite number",
                      source_, position));
    }
    throw Error(fmt::format("{}: is not valid JSON at byte {} of {}, expected {}; mend it or copy it again", source_,
                            std::min(position, text_.size()), text_.size(), limits_.wanted));
  }

 private:
  // The characters of the text without the indentation of lines, which may be most of it: the parser takes as long for
  // each space as for a character of a string. A string has no line feed.
  struct Characters {
    using char_type = char;
    JsonBuilder* of;

    int get_character() {
      const std::string_view text = of->text_;
      std::size_t& next = of->next_;
      if (next > 0 && text[next - 1] == '\n') {
        for (; next < text.size() && text[next] == ' '; ++next) ++of->indentation_;
      }
      return next < text.size() ? static_cast<unsigned char>(text[next++]) : std::char_traits<char>::eof();
    }
  };

  static constexpr bool is_ordered = std::is_same_v<Json, nlohmann::ordered_json>;
  // A node of std::map has three pointers and a colour; each allocation has a header, and a vector up to half unused.
  static constexpr std::size_t allocation_overhead = 16;
  static constexpr std::size_t member_overhead = is_ordered ? 0 : 4 * sizeof(void*) + allocation_overhead;
  static constexpr std::size_t value_size = 2 * sizeof(Json);

  static std::size_t size_of(const std::string& text) {
    return sizeof text + allocation_overhead + (text.capacity() > 15 ? text.size() + allocation_overhead : 0);
  }

  void take_memory(std::size_t bytes) {
    memory_ += bytes;
    if (memory_ <= limits_.memory) return;
    throw Error(fmt::format("{}: has so many values that they would take over {} bytes of memory; make it smaller",
                            source_, limits_.memory));
  }

  // An array or an object that the parser is in.
  struct Open {
    Json value;  // what is known of it, but for the members of an ordered object
    std::vector<std::pair<std::string, Json>>
        members;       // moved when they become too many; those of ordered_json are copied
    std::string name;  // of the member that is being read
  };

  bool put(Json value) {
    take_memory(value_size);
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (is_used()) {
      use_(open_.size() > 1 ? open_[open_.size() - 2].name : inside_, open_.back().name, value);
      value.clear();  // the destructor would first move the values of an array to a list
      memory_ = 0;
    } else if (open_.back().value.is_array()) {
      open_.back().value.push_back(std::move(value));
    } else {
      add_member(open_.back(), std::move(value));
    }
    return true;
  }

  // Whether what is read belongs to `use`.
  bool is_used() const {
    if (!use_) return false;
    return inside_.empty() ? open_.size() == 1 && open_[0].value.is_object()
                           : open_.size() == 3 && open_[0].name == inside_;
  }

  void add_member(Open& object, Json value) {
    if constexpr (is_ordered) {
      object.members.emplace_back(std::move(object.name), std::move(value));
    } else {
      auto& members = object.value.template get_ref<typename Json::object_t&>();
      const auto [entry, is_new] = members.try_emplace(std::move(object.name));
      if (!is_new) reject_repeated(entry->first);
      entry->second = std::move(value);
    }
  }

  bool open(Json value, std::size_t size) {
    if (open_.size() == static_cast<std::size_t>(limits_.levels)) {
      throw Error(fmt::format("{}: is nested too deeply, expected at most {} levels", source_, limits_.levels));
    }
    take_memory(size + allocation_overhead);
    open_.push_back({std::move(value), {}, {}});
    return true;
  }

  bool close(Json value) {
    open_.pop_back();
    return put(std::move(value));
  }

  void reject_repeated(const std::string& name) const {
    if (!limits_.repeated_keys)
      throw Error(fmt::format("{}: the entry {} is repeated, expected once", source_, quote(name)));
  }

  Json finished(Open& object) {
    if constexpr (is_ordered) {
      const std::vector<std::size_t> kept = join_repeated(object.members);
      auto& members = object.value.template get_ref<typename Json::object_t&>();
      members.reserve(kept.size());
      for (const std::size_t i : kept) {
        members.emplace_back(std::move(object.members[i].first), std::move(object.members[i].second));
      }
    }
    return std::move(object.value);
  }

  // Gives the first of equal keys the value of the last. Returns the others' positions, in their order.
  std::vector<std::size_t> join_repeated(std::vector<std::pair<std::string, Json>>& members) const {
    std::vector<std::size_t> order(members.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const int names = members[a].first.compare(members[b].first);
      return names != 0 ? names < 0 : a < b;
    });
    std::size_t count = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (count == 0 || members[order[i]].first != members[order[count - 1]].first) {
        order[count++] = order[i];
        continue;
      }
      reject_repeated(members[order[i]].first);
      members[order[count - 1]].second = std::move(members[order[i]].second);
    }
    order.resize(count);
    std::sort(order.begin(), order.end());
    return order;
  }

  std::string_view text_;
  std::size_t next_ = 0, indentation_ = 0;  // the next character of the text, and how many the parser has not seen
  const std::string& source_;
  const Limits limits_;
  const Use use_;
  const std::string inside_;
  Json root_;
  std::vector<Open> open_;
  std::size_t memory_ = 0;  // an upper bound of what the values take
};

}  // namespace minimind
