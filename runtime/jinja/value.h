#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/jinja/budget.h"
#include "runtime/text/marked_text.h"

namespace minimind::jinja {

// The values of templates: Python's, as far as chat templates use them. Strings and containers are immutable, as in
// transformers' sandbox; only namespaces and iterators are mutable.

class Value;

// UTF-8, always well formed. TextMarks follow their bytes through every operation; they never change what a template
// does.
struct Text : MarkedText {
  explicit Text(MarkedText text);
  std::size_t length;   // in characters
  bool markup = false;  // the result of `safe`; joining it escapes the other text
  bool is_ascii() const { return length == bytes.size(); }
};

struct List;
class Dict;
struct Method;
struct Builtin;
struct Arguments;

struct Undefined {
  std::shared_ptr<const std::string> message;  // the reason, for the error if it is used
};

struct None {};

// What a rendering owns and values only point to: namespaces, iterators, macros, loops and functions.
struct Object {
  virtual ~Object() = default;
  // Returns the kind for messages, such as "a namespace".
  virtual std::string kind_name() const = 0;
  // Returns the attribute, undefined if there is none.
  virtual Value attribute(std::string_view name);
  virtual Value call(const Arguments& arguments);
};

class Value {
 public:
  using TextRef = std::shared_ptr<const Text>;
  using ListRef = std::shared_ptr<const List>;
  using DictRef = std::shared_ptr<const Dict>;
  using MethodRef = std::shared_ptr<const Method>;

  // No value: an omitted argument. Only parameters can have it.
  Value() = default;
  Value(Undefined undefined) : data_(std::move(undefined)) {}
  Value(None none) : data_(none) {}
  Value(bool value) : data_(value) {}
  Value(std::int64_t value) : data_(value) {}
  Value(double value) : data_(value) {}
  Value(TextRef text) : data_(std::move(text)) {}
  Value(ListRef list) : data_(std::move(list)) {}
  Value(DictRef dict) : data_(std::move(dict)) {}
  Value(MethodRef method) : data_(std::move(method)) {}
  Value(Object* object) : data_(object) {}
  Value(MarkedText text) : data_(std::make_shared<const Text>(std::move(text))) {}
  Value(std::string text) : Value(MarkedText(std::move(text))) {}
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
  const Method* method() const { return pointee<MethodRef>(); }
  // Returns the object, null for other values and objects of other classes.
  template <class T = Object>
  T* object() const {
    Object* const* const object = get_if<Object*>();
    return object ? dynamic_cast<T*>(*object) : nullptr;
  }

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

 private:
  template <class Ref>
  const typename Ref::element_type* pointee() const {
    const Ref* const ref = std::get_if<Ref>(&data_);
    return ref ? ref->get() : nullptr;
  }

  std::variant<std::monostate, Undefined, None, bool, std::int64_t, double, TextRef, ListRef, DictRef, MethodRef,
               Object*>
      data_;
};

struct List {
  // A range, and the keys, values and items of a mapping, contain all their items, too.
  enum class Kind { list, tuple, range, keys, values, items };
  // Returns true for the kinds whose items have an index.
  bool is_sequence() const { return kind == Kind::list || kind == Kind::tuple || kind == Kind::range; }

  std::vector<Value> items;
  Kind kind = Kind::list;
  std::size_t depth = 1;
};

// Keys are strings and integers, in the order of their insertion.
class Dict {
 public:
  using Entry = std::pair<Value, Value>;

  // Adds an entry, or replaces the value of an existing key. Throws Failure for other keys.
  void set(Value key, Value value);
  // Returns the value of the key, null if there is none. Throws Failure for keys that Python cannot hash, and floats.
  const Value* find(const Value& key) const;
  // The same, paid for.
  void set(Value key, Value value, Budget& budget);
  const Value* find(const Value& key, Budget& budget) const;
  const std::vector<Entry>& entries() const { return entries_; }
  std::size_t size() const { return entries_.size(); }
  std::size_t depth() const { return depth_; }

 private:
  struct KeyLess {
    bool operator()(const Value& a, const Value& b) const;
  };
  void pay_search(const Value& key, Budget& budget) const;

  std::vector<Entry> entries_;
  std::map<Value, std::size_t, KeyLess> index_;
  std::size_t depth_ = 1;
};

// A method and its subject.
struct Method {
  Value self;
  const Builtin* builtin;
};

// The limit of nesting; making a deeper container throws Failure.
inline constexpr std::size_t max_value_depth = 200;

Value make_list(std::vector<Value> items, Budget& budget, List::Kind kind = List::Kind::list);
Value make_text(MarkedText text, Budget& budget);
Value make_text(std::string unmarked, Budget& budget);
Value make_dict(Dict dict, Budget& budget);
// Returns undefined, with the given reason.
Value make_undefined(std::string message);
Value make_undefined(std::string message, Budget& budget);

// Python's ==. Two undefined values are equal.
bool equal(const Value& a, const Value& b, Budget& budget);

// Python's a < b and, with or_equal, a <= b: of numbers and of strings. Throws Failure for other values.
bool less(const Value& a, const Value& b, bool or_equal, Budget& budget);

// Returns a float as Python's repr() writes it: the shortest digits that read back as `number`.
std::string python_float(double number);

// Returns a number as a float.
double float_of(const Value& number);

// Throws Failure for an undefined value, with its reason.
void require_defined(const Value& value);

// Return an argument that must be an integer or a string; `what` is its name in messages. Escaped text is rejected: it
// would stay escaped in Python.
std::int64_t integer_argument(const Value& value, std::string_view what);
const MarkedText& marked_argument(const Value& value, std::string_view what);
const std::string& string_argument(const Value& value, std::string_view what);

}  // namespace minimind::jinja
