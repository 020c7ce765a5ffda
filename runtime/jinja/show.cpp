#include "runtime/jinja/show.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "runtime/jinja/text.h"
#include "runtime/text/utf8.h"

namespace minimind::jinja {
namespace {

// repr(), piece by piece, each paid for before it is added.
class Shower {
 public:
  explicit Shower(Budget& budget) : budget_(budget) {}

  void show(const Value& value) {
    budget_.spend(1);
    const Budget::Level level(budget_);
    if (const Text* const text = value.text()) {
      budget_.make(text->bytes.size());
      const std::string quoted = quoted_text(text->bytes);
      add(text->markup ? "Markup(" + quoted + ")" : quoted);
    } else if (const List* const list = value.list()) {
      show_list(*list);
    } else if (const Dict* const dict = value.dict()) {
      show_dict(*dict);
    } else if (const DictView* const view = value.view()) {
      show_view(*view);
    } else if (const Range* const range = value.range()) {
      add("range(" + std::to_string(range->start) + ", " + std::to_string(range->stop) +
          (range->step == 1 ? "" : ", " + std::to_string(range->step)) + ")");
    } else if (const Namespace* const name_space = value.name_space()) {
      add("<Namespace ");
      show_dict(name_space->attributes);
      add(">");
    } else {
      show_scalar(value);
    }
  }

  std::string take() { return std::move(text_); }

 private:
  void add(const std::string& piece) {
    budget_.make(piece.size());
    text_ += piece;
  }

  void show_scalar(const Value& value) {
    if (value.is_undefined() || value.is_missing()) return add("Undefined");
    if (value.is_none()) return add("None");
    if (const auto* const flag = value.get_if<bool>()) return add(*flag ? "True" : "False");
    if (const auto* const number = value.get_if<double>()) return add(float_text(*number));
    if (const auto number = value.integer()) return add(std::to_string(*number));
    throw Failure("cannot print " + value.kind_name());
  }

  void show_list(const List& list) {
    add(list.is_tuple ? "(" : "[");
    show_items(list.items);
    add(!list.is_tuple ? "]" : list.items.size() == 1 ? ",)" : ")");
  }

  void show_items(const std::vector<Value>& items) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) add(", ");
      show(items[i]);
    }
  }

  void show_dict(const Dict& dict) {
    add("{");
    bool first = true;
    for (const auto& [key, value] : dict.entries()) {
      if (!first) add(", ");
      first = false;
      show(key);
      add(": ");
      show(value);
    }
    add("}");
  }

  void show_view(const DictView& view) {
    const bool has_keys = view.part != DictView::Part::values;
    const bool has_values = view.part != DictView::Part::keys;
    add(!has_keys ? "dict_values([" : has_values ? "dict_items([" : "dict_keys([");
    bool first = true;
    for (const auto& [key, value] : view.dict->entries()) {
      if (!first) add(", ");
      first = false;
      if (has_keys && has_values) add("(");
      if (has_keys) show(key);
      if (has_keys && has_values) add(", ");
      if (has_values) show(value);
      if (has_keys && has_values) add(")");
    }
    add("])");
  }

  Budget& budget_;
  std::string text_;
};

class JsonWriter {
 public:
  JsonWriter(const JsonStyle& style, Budget& budget) : style_(style), budget_(budget) {}

  void write(const Value& value) {
    budget_.spend(1);
    const Budget::Level level(budget_);
    if (const Text* const text = value.text()) {
      add(quoted(text->bytes));
    } else if (const List* const list = value.list()) {
      write_list(*list);
    } else if (const Dict* const dict = value.dict()) {
      write_dict(*dict);
    } else {
      add(scalar(value));
    }
  }

  std::string take() { return std::move(text_); }

 private:
  void add(const std::string& piece) {
    budget_.make(piece.size());
    text_ += piece;
  }

  std::string scalar(const Value& value) const {
    if (value.is_none()) return "null";
    if (const auto* const flag = value.get_if<bool>()) return *flag ? "true" : "false";
    if (const auto* const number = value.get_if<double>()) {
      if (std::isnan(*number)) return "NaN";
      if (std::isinf(*number)) return *number < 0 ? "-Infinity" : "Infinity";
      return float_text(*number);
    }
    if (const auto number = value.integer()) return std::to_string(*number);
    throw Failure("cannot write " + value.kind_name() + " as JSON");
  }

  void new_line() {
    if (!style_.indent) return;
    if (style_.indent->size() > 0) budget_.make(level_ * style_.indent->size());
    text_ += '\n';
    for (std::size_t i = 0; i < level_; ++i) text_ += *style_.indent;
  }

  void write_list(const List& list) {
    if (list.items.empty()) return add("[]");
    add("[");
    ++level_;
    new_line();
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) separate();
      write(list.items[i]);
    }
    --level_;
    new_line();
    add("]");
  }

  void separate() {
    add(style_.item_separator);
    new_line();
  }

  void write_dict(const Dict& dict) {
    if (dict.size() == 0) return add("{}");
    std::vector<const Dict::Entry*> entries;
    for (const auto& entry : dict.entries()) entries.push_back(&entry);
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(), [&](const Dict::Entry* a, const Dict::Entry* b) {
        return less(a->first, b->first, false, budget_);
      });
    }
    add("{");
    ++level_;
    new_line();
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) separate();
      write_key(entries[i]->first);
      add(style_.key_separator);
      write(entries[i]->second);
    }
    --level_;
    new_line();
    add("}");
  }

  void write_key(const Value& key) {
    if (key.list() || key.is_undefined()) throw Failure("cannot write " + key.kind_name() + " as a key of JSON");
    add(quoted(key.text() ? key.text()->bytes : scalar(key)));
  }

  static void add_unit(std::string& text, unsigned unit) {
    std::array<char, 16> escape;
    std::snprintf(escape.data(), escape.size(), "\\u%04x", unit);
    text += escape.data();
  }

  std::string quoted(const std::string& text) const {
    constexpr std::string_view special = "\"\\\n\r\t\b\f";
    constexpr std::string_view letters = "\"\\nrtbf";
    budget_.make(text.size());
    std::string result = "\"";
    for (std::size_t at = 0; at < text.size();) {
      const Utf8Char character = first_utf8(std::string_view(text).substr(at));
      const char32_t c = character.code_point;
      const std::size_t known = c < 0x80 ? special.find(static_cast<char>(c)) : std::string_view::npos;
      if (known != std::string_view::npos) {
        result.append("\\").append(1, letters[known]);
      } else if (c >= 0x20 && (!style_.ensure_ascii || c < 0x7F)) {
        result.append(text, at, character.size);
      } else if (c < 0x10000) {
        add_unit(result, static_cast<unsigned>(c));
      } else {
        add_unit(result, 0xD800 + ((static_cast<unsigned>(c) - 0x10000) >> 10));
        add_unit(result, 0xDC00 + (static_cast<unsigned>(c) & 0x3FF));
      }
      at += character.size;
    }
    return result + "\"";
  }

  const JsonStyle& style_;
  Budget& budget_;
  std::size_t level_ = 0;
  std::string text_;
};

}  // namespace

std::string shown(const Value& value, Budget& budget) {
  if (const Text* const text = value.text()) {
    budget.make(text->bytes.size());
    return text->bytes;
  }
  if (value.is_undefined()) return {};
  Shower shower(budget);
  shower.show(value);
  return shower.take();
}

std::string to_json(const Value& value, const JsonStyle& style, Budget& budget) {
  JsonWriter writer(style, budget);
  writer.write(value);
  return writer.take();
}

}  // namespace minimind::jinja
