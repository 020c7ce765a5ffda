#include "runtime/jinja/json.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "weights/io/error.h"

namespace minimind::jinja {
namespace {

using Json = nlohmann::json;

constexpr std::size_t max_depth = 150;

// Builds the value as nlohmann's parser, which does not recurse, reads along.
class Builder : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(const std::string& source) : source_(source) {}

  Value take() { return std::move(result_); }

  bool null() override { return add(None{}); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(std::int64_t{value}); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<number_unsigned_t>(INT64_MAX)) fail_large(std::to_string(value));
    return add(static_cast<std::int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t& digits) override {
    if (digits.find_first_of(".eE") == string_t::npos) fail_large(digits);
    return add(value);
  }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override { return open(false); }
  bool start_array(std::size_t) override { return open(true); }
  bool key(string_t& name) override {
    open_.back().key = std::move(name);
    return true;
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool parse_error(std::size_t position, const std::string&, const Json::exception&) override {
    throw Error(fmt::format("{}: is not valid JSON at byte {}", source_, position));
  }

 private:
  struct Open {
    bool is_list;
    std::string key;
    std::vector<Value> items;
    Dict dict;
  };

  [[noreturn]] void fail_large(const std::string& digits) const {
    throw Error(fmt::format("{}: the integer {} does not fit in 64 bits", source_, digits.substr(0, 40)));
  }

  bool add(Value value) {
    if (open_.empty()) {
      result_ = std::move(value);
    } else if (open_.back().is_list) {
      open_.back().items.push_back(std::move(value));
    } else {
      open_.back().dict.set(std::exchange(open_.back().key, {}), std::move(value));
    }
    return true;
  }

  bool open(bool is_list) {
    if (open_.size() == max_depth) throw Error(fmt::format("{}: is nested deeper than {} levels", source_, max_depth));
    open_.push_back({.is_list = is_list, .key = {}, .items = {}, .dict = {}});
    return true;
  }

  bool close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    return add(done.is_list ? make_list(std::move(done.items), budget_) : make_dict(std::move(done.dict), budget_));
  }

  const std::string& source_;
  Budget budget_{Limits{.steps = SIZE_MAX, .depth = SIZE_MAX, .bytes = SIZE_MAX, .output = SIZE_MAX}};
  std::vector<Open> open_;
  Value result_;
};

}  // namespace

Value parse_json(std::string_view text, const std::string& source) {
  if (text.size() > max_json_size) {
    throw Error(fmt::format("{}: has {} bytes; at most {} are read", source, text.size(), max_json_size));
  }
  Builder builder(source);
  Json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

}  // namespace minimind::jinja
