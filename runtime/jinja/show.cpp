#include "runtime/jinja/show.h"

#include <algorithm>
#include <vector>

#include "runtime/jinja/text.h"
#include "runtime/text/utf8.h"
#include "weights/base/text.h"

namespace minimind::jinja {
namespace {

MarkedText json_text(const MarkedText& whole, bool ensure_ascii) {
  constexpr std::string_view special = "\"\\\n\r\t\b\f";
  constexpr std::string_view letters = "\"\\nrtbf";
  const std::string_view text = whole.bytes;
  MarkedText result(std::string("\""));
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char character = first_utf8(text.substr(at));
    const std::string_view part = text.substr(at, character.size);
    const auto add_unit = [&](unsigned unit) { result.append_instead(whole, part, hex_escape('u', unit, 4)); };
    const auto c = static_cast<unsigned>(character.code_point);
    const std::size_t known = c < 0x80 ? special.find(static_cast<char>(c)) : std::string_view::npos;
    if (known != std::string_view::npos) {
      const char escape[] = {'\\', letters[known]};
      result.append_instead(whole, part, {escape, 2});
    } else if (c >= 0x20 && (!ensure_ascii || c < 0x7F)) {
      result.append_part(whole, part);
    } else if (c < 0x10000) {
      add_unit(c);
    } else {
      add_unit(0xD800 + ((c - 0x10000) >> 10));
      add_unit(0xDC00 + (c & 0x3FF));
    }
    at += character.size;
  }
  result.append("\"");
  return result;
}

// Writes a value as repr() does or, with a style, as json.dumps() does. Each piece is paid for before it is appended.
class Writer {
 public:
  Writer(const JsonStyle* json, Budget& budget) : json_(json), budget_(budget) {}

  void write(const Value& value) {
    budget_.spend(1);
    const Budget::Level level(budget_);
    if (const Text* const text = value.text()) {
      write_text(*text);
    } else if (const List* const list = value.list()) {
      write_list(*list, value);
    } else if (const Dict* const dict = value.dict()) {
      write_items("{", "}", dict->size(), [&](std::size_t i) { write_entry(dict->entries()[i]); });
    } else {
      add(scalar(value));
    }
  }

  MarkedText take() { return std::move(text_); }

 private:
  void add(std::string_view piece) {
    budget_.make(piece.size());
    text_.append(piece);
  }

  [[noreturn]] void reject(const Value& value) const {
    throw Failure(json_ ? "cannot write " + value.kind_name() + " as JSON" : "cannot print " + value.kind_name());
  }

  std::string scalar(const Value& value) const {
    if (value.is_none()) return json_ ? "null" : "None";
    if (value.is_bool()) return value.truth() ? (json_ ? "true" : "True") : (json_ ? "false" : "False");
    if (const auto* const number = value.get_if<double>()) return python_float(*number);
    if (const auto number = value.integer()) return std::to_string(*number);
    if (!json_ && value.is_undefined()) return "Undefined";
    reject(value);
  }

  void write_text(const Text& text) {
    budget_.make(text.bytes.size());
    budget_.read(text.bytes.size());
    if (!json_ && text.markup) throw Failure("printing escaped text in a list or a mapping is not supported");
    const MarkedText piece = json_ ? json_text(text, json_->ensure_ascii) : quoted_text(text);
    budget_.make(piece.bytes.size());
    text_.append(piece);
  }

  void write_list(const List& list, const Value& value) {
    const auto write_item = [&](std::size_t i) { write(list.items[i]); };
    if (list.kind == List::Kind::list) return write_items("[", "]", list.items.size(), write_item);
    if (list.kind != List::Kind::tuple) reject(value);
    if (json_) return write_items("[", "]", list.items.size(), write_item);
    write_items("(", list.items.size() == 1 ? ",)" : ")", list.items.size(), write_item);
  }

  void write_entry(const Dict::Entry& entry) {
    const auto& [key, value] = entry;
    write(json_ && !key.text() ? Value(scalar(key)) : key);
    add(json_ ? json_->key_separator : ": ");
    write(value);
  }

  template <class WriteItem>
  void write_items(std::string_view opening, std::string_view closing, std::size_t count, WriteItem write_item) {
    add(opening);
    ++level_;
    for (std::size_t i = 0; i < count; ++i) {
      if (i > 0) add(json_ ? json_->item_separator : ", ");
      begin_line();
      write_item(i);
    }
    --level_;
    if (count > 0) begin_line();
    add(closing);
  }

  void begin_line() {
    if (!json_ || !json_->indent) return;
    add("\n");
    budget_.make(json_->indent->size(), level_);
    for (std::size_t i = 0; i < level_; ++i) text_.append(*json_->indent);
  }

  const JsonStyle* json_;
  Budget& budget_;
  std::size_t level_ = 0;
  MarkedText text_;
};

MarkedText written(const Value& value, const JsonStyle* json, Budget& budget) {
  Writer writer(json, budget);
  writer.write(value);
  return writer.take();
}

}  // namespace

MarkedText shown(const Value& value, Budget& budget) {
  if (value.is_undefined()) return {};
  const Text* const text = value.text();
  if (!text) return written(value, nullptr, budget);
  budget.make(text->bytes.size());
  return *text;
}

MarkedText text_argument(const Value& value, Budget& budget) {
  if (!value.text()) return shown(value, budget);
  budget.scan(value.text()->bytes.size());
  return marked_argument(value, "a text");
}

MarkedText to_json(const Value& value, const JsonStyle& style, Budget& budget) {
  return written(value, &style, budget);
}

Value formatted(const Value& format, const Value& arguments, Budget& budget) {
  const MarkedText& whole = marked_argument(format, "a format");
  const std::string_view text = whole.bytes;
  const bool is_tuple = arguments.list() && arguments.list()->kind == List::Kind::tuple;
  budget.spend(is_tuple ? arguments.list()->items.size() : 1);
  const std::vector<Value> values = is_tuple ? arguments.list()->items : std::vector<Value>{arguments};
  std::size_t used = 0;
  MarkedText result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t percent = std::min(text.find('%', at), text.size());
    budget.make(percent - at);
    result.append_part(whole, text.substr(at, percent - at));
    if (percent == text.size()) break;
    budget.spend(1);
    const std::string_view directive = text.substr(percent, 2);
    at = percent + 2;
    if (directive == "%%") {
      result.append_part(whole, directive.substr(0, 1));
      continue;
    }
    if (used == values.size()) throw Failure("the format has more places than there are arguments");
    const Value& value = values[used++];
    if (directive != "%s" && !(directive == "%d" && value.integer())) {
      throw Failure("only %s, %% and, for integers, %d are supported in a format");
    }
    result.append(directive == "%s" ? shown(value, budget) : MarkedText(std::to_string(*value.integer())));
  }
  // As in Python, a value with items may be given for the names of a format, of which there may be none.
  const bool has_items = !is_tuple && (arguments.list() || arguments.dict() || arguments.is_undefined());
  if (used < values.size() && !has_items) throw Failure("the format has fewer places than there are arguments");
  return make_text(std::move(result), budget);
}

}  // namespace minimind::jinja
