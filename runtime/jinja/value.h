#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/jinja/budget.h"

namespace minimind::jinja {

// The values of templates: Python's, as far as chat templates use them. Strings and containers are immutable, as in
// transformers' sandbox; only namespaces and iterators are mutable.

class Value;

// UTF-8, always well formed.
struct Text {
  explicit Text(std::string text);
  std::string bytes;
  std::size_t length;   // in characters
  bool markup = false;  // the result of `safe`; joining it escapes the other text
  bool is_ascii() const { return length == bytes.size(); }
};

struct List;
class Dict;
struct DictView;
struct Range;

struct Undefined {
  std::shared_ptr<const std::string> message;  // the reason, for the error if it is used
};

struct None {};

// A method and its subject.
struct Method;

// An object that a rendering owns and values only point to: namespaces, iterators, macros, loops and functions.
struct Object {
  enum class Kind { name_space, iterator, macro, loop, function };
  explicit Object(Kind of_kind) : kind(of_kind) {}
  virtual ~Object() = default;
  Kind kind;
};

struct Namespace;
struct Iterator;

class Value {
 public:
  using TextRef = std::shared_ptr<const Text>;
  using ListRef = std::shared_ptr<const List>;
  using DictRef = std::shared_ptr<const Dict>;
  using ViewRef = std::shared_ptr<const DictView>;
  using RangeRef = std::shared_ptr<const Range>;
  using MethodRef = std::shared_ptr<const Method>;

  // No value: a variable that was never set. Only variables can have it.
  Value() = default;
  Value(Undefined undefined) : data_(std::move(undefined)) {}
  Value(None none) : data_(none) {}
  Value(bool value) : data_(value) {}
  Value(std::int64_t value) : data_(value) {}
  Value(double value) : data_(value) {}
  Value(TextRef text) : data_(std::move(text)) {}
  Value(ListRef list) : data_(std::move(list)) {}
  Value(DictRef dict) : data_(std::move(dict)) {}
  Value(ViewRef view) : data_(std::move(view)) {}
  Value(RangeRef range) : data_(std::move(range)) {}
  Value(MethodRef method) : data_(std::move(method)) {}
  Value(Object* object) : data_(object) {}
  Value(std::string text) : data_(std::make_shared<const Text>(std::move(text))) {}
  Value(const char* text) : Value(std::string(text)) {}
  template <class T>
  Value(T*) = delete;  // would convert to true

  template <class T>
  const T* get_if() const {
    return std::get_if<T>(&data_);
  }
  const Text* text() const { return pointee<TextRef>(); }
  const List* list() const { return pointee<ListRef>(); }
  const Dict* dict() const { return pointee<DictRef>(); }
  const DictView* view() const { return pointee<ViewRef>(); }
  const Range* range() const { return pointee<RangeRef>(); }
  const Method* method() const { return pointee<MethodRef>(); }
  Object* object(Object::Kind kind) const {
    Object* const* const object = get_if<Object*>();
    return object && (*object)->kind == kind ? *object : nullptr;
  }
  Namespace* name_space() const;
  Iterator* iterator() const;

  bool is_missing() const { return data_.index() == 0; }
  bool is_undefined() const { return get_if<Undefined>() != nullptr; }
  bool is_none() const { return get_if<None>() != nullptr; }
  bool is_bool() const { return get_if<bool>() != nullptr; }
  bool is_number() const { return is_bool() || get_if<std::int64_t>() || get_if<double>(); }
  // An integer or a bool, which is an integer in Python.
  std::optional<std::int64_t> integer() const;

  bool truth() const;
  // Returns the kind of a value for messages, such as "a string".
  std::string kind_name() const;
  // Returns the nesting depth of a container, itself included; 0 for other values.
  std::size_t depth() const;
  const void* identity() const;

 private:
  template <class Ref>
  const typename Ref::element_type* pointee() const {
    const Ref* const ref = std::get_if<Ref>(&data_);
    return ref ? ref->get() : nullptr;
  }

  std::variant<std::monostate, Undefined, None, bool, std::int64_t, double, TextRef, ListRef, DictRef, ViewRef,
               RangeRef, MethodRef, Object*>
      data_;
};

struct List {
  std::vector<Value> items;
  bool is_tuple = false;
  std::size_t depth = 1;
};

// Keys in the order of their insertion; 1, 1.0 and true are one key, as in Python.
class Dict {
 public:
  using Entry = std::pair<Value, Value>;

  // Adds an entry, or replaces the value of an existing key. Throws Failure for a key that is not hashable.
  void set(Value key, Value value);
  const Value* find(const Value& key) const;
  const std::vector<Entry>& entries() const { return entries_; }
  std::size_t size() const { return entries_.size(); }
  std::size_t depth() const { return depth_; }

 private:
  struct KeyLess {
    bool operator()(const Value& a, const Value& b) const;
  };
  std::vector<Entry> entries_;
  std::map<Value, std::size_t, KeyLess> index_;
  std::size_t depth_ = 1;
};

struct DictView {
  enum class Part { keys, values, items };
  std::shared_ptr<const Dict> dict;
  Part part;
};

struct Range {
  std::int64_t start, stop, step;
  std::size_t size() const;
  std::int64_t at(std::size_t index) const { return start + static_cast<std::int64_t>(index) * step; }
};

struct Method {
  Value self;
  std::string name;
};

struct Namespace : Object {
  Namespace() : Object(Kind::name_space) {}
  Dict attributes;
};

// A source of items that can be read once, as Python's generators.
struct Iterator : Object {
  explicit Iterator(std::function<std::optional<Value>()> source) : Object(Kind::iterator), next(std::move(source)) {}
  std::function<std::optional<Value>()> next;
};

inline Namespace* Value::name_space() const {
  return static_cast<Namespace*>(object(Object::Kind::name_space));
}
inline Iterator* Value::iterator() const {
  return static_cast<Iterator*>(object(Object::Kind::iterator));
}

// The limit of nesting; making a deeper container throws Failure.
inline constexpr std::size_t max_value_depth = 200;

Value make_list(std::vector<Value> items, Budget& budget);
Value make_tuple(std::vector<Value> items, Budget& budget);
Value make_text(std::string text, Budget& budget);
Value make_dict(Dict dict, Budget& budget);
// Returns undefined, with the given reason.
Value make_undefined(std::string message);

// Python's ==. Two undefined values are equal.
bool equal(const Value& a, const Value& b, Budget& budget);

// Python's a < b and, with or_equal, a <= b: of numbers, strings, lists and tuples. Throws Failure for other values.
bool less(const Value& a, const Value& b, bool or_equal, Budget& budget);

// Returns -1, 0 or 1 for a < b, a == b or a > b, exactly, for any mix of integers, floats and bools; 2 if one is NaN.
int compare_numbers(const Value& a, const Value& b);

// The state of one rendering: its budget, its objects and the time of strftime_now.
class Context {
 public:
  Context(const Limits& limits, std::time_t time) : budget(limits), now(time) {}

  // Makes an object that lives as long as the rendering.
  template <class T, class... Arguments>
  T* own(Arguments&&... arguments) {
    budget.make(sizeof(T) + 64);
    auto object = std::make_unique<T>(std::forward<Arguments>(arguments)...);
    T* const result = object.get();
    objects_.push_back(std::move(object));
    return result;
  }

  Budget budget;
  std::time_t now;

 private:
  std::vector<std::unique_ptr<Object>> objects_;
};

// The arguments of a call.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keywords;
};

// Arguments by parameter, for a builtin.
class Bound {
 public:
  explicit Bound(std::vector<Value> values) : values_(std::move(values)) {}

  // Returns the argument, null if none is given.
  const Value* get(std::size_t parameter) const {
    return values_[parameter].is_missing() ? nullptr : &values_[parameter];
  }
  // Returns a required argument.
  const Value& at(std::size_t parameter) const { return values_[parameter]; }

 private:
  std::vector<Value> values_;
};

// A filter, test, function or method, applied to its subject.
struct Builtin {
  std::string_view name;
  std::vector<std::string_view> parameters;
  std::size_t required;
  Value (*run)(Context& context, const Value& subject, const Bound& arguments);
  // Used instead if the parameters are not fixed.
  Value (*run_any)(Context& context, const Value& subject, const Arguments& arguments) = nullptr;
};

// Runs the builtin. Throws Failure if the arguments do not fit the parameters.
Value run_builtin(Context& context, const Builtin& builtin, const Value& subject, const Arguments& arguments);

// Return an argument that must be an integer or a string; `what` is its name in messages.
std::int64_t integer_argument(const Value& value, std::string_view what);
const Text& string_argument(const Value& value, std::string_view what);

// Throws Failure for an undefined value, with its reason.
void require_defined(const Value& value);

// Throws Failure for escaped text, which would stay escaped in Python.
void reject_markup(const Text& text);

}  // namespace minimind::jinja
