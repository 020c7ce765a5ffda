#include "weights/torch/pickle.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <iterator>
#include <optional>

#include "weights/base/text.h"

namespace minimind::pickle {
namespace {

// The result of calling an allow-listed name.
enum class Role {
  mention,       // never called: a dtype, a storage class
  call,          // recorded as a Call
  ordered_dict,  // becomes a Dict
  size,          // torch.Size: becomes its Tuple
};

struct AllowedGlobal {
  std::string_view name;
  Role role;
};

constexpr AllowedGlobal allowed_globals[] = {
    {"collections.OrderedDict", Role::ordered_dict},
    {"torch._utils._rebuild_tensor_v2", Role::call},
    {"torch._utils._rebuild_tensor", Role::call},
    {"torch._utils._rebuild_parameter", Role::call},
    {"torch._utils._rebuild_parameter_with_state", Role::call},
    {"torch.FloatStorage", Role::mention},
    {"torch.HalfStorage", Role::mention},
    {"torch.BFloat16Storage", Role::mention},
    {"torch.DoubleStorage", Role::mention},
    {"torch.LongStorage", Role::mention},
    {"torch.IntStorage", Role::mention},
    {"torch.ShortStorage", Role::mention},
    {"torch.CharStorage", Role::mention},
    {"torch.ByteStorage", Role::mention},
    {"torch.BoolStorage", Role::mention},
    {"torch.storage.UntypedStorage", Role::mention},
    {"torch.storage.TypedStorage", Role::mention},
    {"torch.Size", Role::size},
    {"torch.device", Role::call},
    {"torch.float32", Role::mention},
    {"torch.float16", Role::mention},
    {"torch.bfloat16", Role::mention},
    {"torch.float64", Role::mention},
    {"torch.int64", Role::mention},
    {"torch.int32", Role::mention},
    {"torch.int16", Role::mention},
    {"torch.int8", Role::mention},
    {"torch.uint8", Role::mention},
    {"torch.bool", Role::mention},
    // Stored next to the weights: options, random states, Python's form of values that have no opcode in protocol 2.
    {"argparse.Namespace", Role::call},
    {"collections.Counter", Role::call},
    {"_codecs.encode", Role::call},
    {"builtins.bytes", Role::call},
    {"builtins.bytearray", Role::call},
    {"builtins.complex", Role::call},
    {"builtins.set", Role::call},
    {"builtins.frozenset", Role::call},
    {"numpy.dtype", Role::call},
    {"numpy.ndarray", Role::mention},
    {"numpy.core.multiarray.scalar", Role::call},
    {"numpy.core.multiarray._reconstruct", Role::call},
    {"numpy._core.multiarray.scalar", Role::call},
    {"numpy._core.multiarray._reconstruct", Role::call},
};

// The entry for `name`, module and name joined by a dot, or null if it is not allow-listed. The list holds what
// torch.save writes for tensors and what a training run saves next to them; calling any of it only builds a value.
const AllowedGlobal* find_allowed_global(std::string_view name) {
  const auto found = std::find_if(std::begin(allowed_globals), std::end(allowed_globals),
                                  [&](const AllowedGlobal& entry) { return entry.name == name; });
  return found == std::end(allowed_globals) ? nullptr : found;
}

class Unpickler {
 public:
  explicit Unpickler(ByteReader& reader);

  Document run();

 private:
  using Number = std::uint64_t;
  struct Opcode {
    std::uint8_t byte;
    std::uint8_t width;  // of the number that follows, in bytes; 0: none follows
    void (*run)(Unpickler& own, Number number);
  };
  static const Opcode opcodes[];

  Text kept(std::string_view text);
  void add_kept(std::string_view text) { add(kept(text)); }
  void add_text(std::uint64_t size);
  void add_skipped_bytes(std::uint64_t size);
  void add_bool(bool value) { add(value); }
  void add_integer(std::int64_t value) { add(value); }
  void add_float(double value) { add(value); }
  void add_decimal();
  void add_long(std::uint64_t size);
  void add_storage() { add(PersistentId{pop()}); }
  void push(Id id);
  void add(Value value);
  Id pop();
  void count_items(std::size_t count);
  std::vector<Id> pop_items(std::size_t count);
  std::size_t take_mark();
  Value& top();
  template <typename T>
  T& top_as(std::string_view wanted);

  void remember(std::uint64_t index);
  void recall(std::uint64_t index);
  // Each takes so many values from the stack.
  template <class Container>
  void add_container(std::size_t count);
  void add_dict(std::size_t count);
  template <class Container>
  void add_items(std::size_t count, std::string_view wanted);
  void add_pairs(std::size_t count);
  void add_entries(Dict& dict, const std::vector<Id>& items) const;
  void mark();
  void drop();
  void check_protocol(std::uint64_t protocol) const;
  void check_frame(std::uint64_t size) const;

  void add_global(std::string_view module, std::string_view name);
  void read_global();
  void name_global();
  void construct(bool class_follows);
  void apply();
  void call(Id callable, Id arguments);
  Dict ordered_dict(const Tuple& arguments);
  void build();

  // The bottom of the poppable stack: values below the last mark must stay.
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  template <typename... T>
  [[noreturn]] void fail(fmt::format_string<const T&...> reason, const T&... values) const {
    fail_with(reason, fmt::make_format_args(values...));
  }
  [[noreturn]] void fail_with(fmt::string_view reason, fmt::format_args values) const {
    reader_.fail(fmt::format("corrupt or hostile pickle: {} (before offset {})", fmt::vformat(reason, values),
                             reader_.position()));
  }

  ByteReader& reader_;
  Document document_;
  std::size_t text_size_ = 0;  // of all strings
  std::vector<Id> stack_;
  std::vector<std::size_t> marks_;  // heights of stack_
  std::vector<std::optional<Id>> memo_;
  std::size_t contained_items_ = 0;
  std::array<const Opcode*, 256> by_byte_{};  // null: none of plain data
};

// The reader keeps a text only until its next read.
Text Unpickler::kept(std::string_view text) {
  text_size_ += text.size();
  if (text_size_ > most_text) fail("more than {} bytes of strings", most_text);
  if (text.empty()) return {};
  char* const copy = static_cast<char*>(document_.texts->allocate(text.size(), 1));
  std::memcpy(copy, text.data(), text.size());
  return {{copy, text.size()}};
}

void Unpickler::add_text(std::uint64_t size) {
  if (size > most_text) fail("a string of {} bytes, expected at most {}", size, most_text);
  add_kept(reader_.take_text(size));
}

void Unpickler::add_skipped_bytes(std::uint64_t size) {
  reader_.skip(size);
  add(Bytes{});
}

// In protocol 1, "00" and "01" are False and True, and a long number ends with L.
void Unpickler::add_decimal() {
  std::string_view digits = reader_.take_line();
  if (digits == "00" || digits == "01") return add_bool(digits == "01");
  if (digits.ends_with('L')) digits.remove_suffix(1);
  const auto value = number_in<std::int64_t>(digits);
  if (!value) fail("{} is not a 64-bit number", quote(digits));
  add_integer(*value);
}

// Two's complement of any size, the lowest byte first.
void Unpickler::add_long(std::uint64_t size) {
  if (size > sizeof(std::int64_t)) {
    reader_.skip(size);
    return add(BigInteger{});
  }
  const std::string_view digits = reader_.take_text(size);
  std::int64_t value = !digits.empty() && static_cast<signed char>(digits.back()) < 0 ? -1 : 0;
  std::memcpy(&value, digits.data(), digits.size());
  add_integer(value);
}

void Unpickler::push(Id id) {
  if (stack_.size() >= most_values) fail("more than {} values on the stack", most_values);
  stack_.push_back(id);
}

void Unpickler::add(Value value) {
  if (document_.values.size() >= most_values) fail("more than {} values", most_values);
  document_.values.push_back(std::move(value));
  push(static_cast<Id>(document_.values.size() - 1));
}

Id Unpickler::pop() {
  if (stack_.size() <= floor()) fail("a value is taken from an empty stack");
  const Id id = stack_.back();
  stack_.pop_back();
  return id;
}

// Items are shared values, so that there may be many more items than values.
void Unpickler::count_items(std::size_t count) {
  contained_items_ += count;
  if (contained_items_ > most_items) fail("more than {} items in containers", most_items);
}

std::vector<Id> Unpickler::pop_items(std::size_t count) {
  if (stack_.size() - floor() < count) fail("a value is taken from an empty stack");
  count_items(count);
  const auto first = stack_.end() - static_cast<std::ptrdiff_t>(count);
  std::vector<Id> items(first, stack_.end());
  stack_.erase(first, stack_.end());
  return items;
}

// Returns the number of values after the last mark, and removes the mark.
std::size_t Unpickler::take_mark() {
  if (marks_.empty()) fail("the stack has no mark, expected one");
  const std::size_t count = stack_.size() - marks_.back();
  marks_.pop_back();
  return count;
}

Value& Unpickler::top() {
  if (stack_.size() <= floor()) fail("the stack is empty, expected a value");
  return document_.values[stack_.back()];
}

template <typename T>
T& Unpickler::top_as(std::string_view wanted) {
  if (auto* value = std::get_if<T>(&top())) return *value;
  fail("items are added to a {}, not to a {}", type_name(top()), wanted);
}

// Picklers number their memo from 0 or 1 without gaps, so an index over the limit on values is corrupt.
void Unpickler::remember(std::uint64_t index) {
  if (index >= most_values) fail("memo index {} is out of range", index);
  if (stack_.size() <= floor()) fail("the stack is empty, expected a value");
  if (index >= memo_.size()) memo_.resize(static_cast<std::size_t>(index) + 1);
  memo_[static_cast<std::size_t>(index)] = stack_.back();
}

void Unpickler::recall(std::uint64_t index) {
  if (index >= memo_.size() || !memo_[static_cast<std::size_t>(index)]) {
    fail("memo entry {} was never set", index);
  }
  push(*memo_[static_cast<std::size_t>(index)]);
}

template <class Container>
void Unpickler::add_container(std::size_t count) {
  add(Container{pop_items(count)});
}

template <class Container>
void Unpickler::add_items(std::size_t count, std::string_view wanted) {
  const std::vector<Id> added = pop_items(count);
  auto& items = top_as<Container>(wanted).items;
  items.insert(items.end(), added.begin(), added.end());
}

void Unpickler::add_entries(Dict& dict, const std::vector<Id>& items) const {
  if (items.size() % 2 != 0) fail("a key of a dict has no value");
  for (std::size_t i = 0; i < items.size(); i += 2) dict.entries.emplace_back(items[i], items[i + 1]);
}

void Unpickler::add_pairs(std::size_t count) {
  const std::vector<Id> items = pop_items(count);
  add_entries(top_as<Dict>("dict"), items);
}

void Unpickler::add_dict(std::size_t count) {
  Dict dict;
  add_entries(dict, pop_items(count));
  add(std::move(dict));
}

void Unpickler::mark() {
  if (marks_.size() >= most_values) fail("more than {} marks", most_values);
  marks_.push_back(stack_.size());
}

// Python also accepts it for removing a mark.
void Unpickler::drop() {
  stack_.size() > floor() ? void(pop()) : void(take_mark());
}

void Unpickler::check_protocol(std::uint64_t protocol) const {
  if (protocol > 5) fail("the protocol is {}, expected 0 to 5", protocol);
}

void Unpickler::check_frame(std::uint64_t size) const {
  if (size > reader_.remaining()) fail("a frame of {} bytes passes the end", size);
}

void Unpickler::read_global() {
  const std::string module(reader_.take_line());
  add_global(module, reader_.take_line());
}

void Unpickler::name_global() {
  const Id name = pop();
  const auto* name_text = std::get_if<Text>(&document_.at(name));
  const auto* module_text = std::get_if<Text>(&document_.at(pop()));
  if (name_text == nullptr || module_text == nullptr) fail("a name is not a string");
  add_global(module_text->text, name_text->text);
}

// The class is the first item, or follows in two lines.
void Unpickler::construct(bool class_follows) {
  std::vector<Id> items = pop_items(take_mark());
  if (class_follows) {
    read_global();
    items.insert(items.begin(), pop());
  }
  if (items.empty()) fail("an object has no class");
  add(Tuple{{items.begin() + 1, items.end()}});
  const Id arguments = pop();
  call(items.front(), arguments);
}

void Unpickler::apply() {
  const Id arguments = pop();
  call(pop(), arguments);
}

void Unpickler::add_global(std::string_view module, std::string_view name) {
  // Protocol 2 uses Python 2's name of the module.
  const std::string full_name = fmt::format("{}.{}", module == "__builtin__" ? "builtins" : module, name);
  const AllowedGlobal* allowed = find_allowed_global(full_name);
  if (allowed == nullptr) {
    reader_.fail(
        fmt::format("the pickle refers to {}, which is not a part of plain weights; nothing was executed; if you "
                    "trust this file, load it in Python and torch.save(model.state_dict(), ...) again",
                    quote(full_name)));
  }
  add(Global{allowed->name});
}

void Unpickler::call(Id callable, Id arguments) {
  const auto* global = std::get_if<Global>(&document_.at(callable));
  const auto* tuple = std::get_if<Tuple>(&document_.at(arguments));
  if (global == nullptr || tuple == nullptr) {
    fail("a {} is called with a {}; nothing was executed", type_name(document_.at(callable)),
         type_name(document_.at(arguments)));
  }
  switch (find_allowed_global(global->name)->role) {
    case Role::mention:
      fail("{} is called, which no checkpoint does; nothing was executed", quote(global->name));
    case Role::call:
      return add(Call{global->name, arguments});
    case Role::ordered_dict:
      return add(ordered_dict(*tuple));
    case Role::size:
      if (tuple->items.size() != 1 || !std::holds_alternative<Tuple>(document_.at(tuple->items[0]))) {
        fail("torch.Size is called with something other than a tuple");
      }
      return push(tuple->items[0]);
  }
}

// Python 3 calls it without arguments and adds the items afterwards; Python 2 passes a list of [key, value].
Dict Unpickler::ordered_dict(const Tuple& arguments) {
  Dict dict;
  if (arguments.items.empty()) return dict;
  const auto* pairs = std::get_if<List>(&document_.at(arguments.items[0]));
  if (pairs == nullptr || arguments.items.size() != 1) fail("an OrderedDict is made of something other than a list");
  count_items(pairs->items.size());  // a pickle may pass one list many times
  for (const Id id : pairs->items) {
    const auto* pair = std::get_if<List>(&document_.at(id));
    if (pair == nullptr || pair->items.size() != 2) fail("an entry of an OrderedDict is not a pair");
    dict.entries.emplace_back(pair->items[0], pair->items[1]);
  }
  return dict;
}

void Unpickler::build() {
  pop();
  const auto* target = std::get_if<Call>(&top());
  const bool is_tensor = target != nullptr && target->callable.starts_with("torch._utils.");
  if (is_tensor || (target == nullptr && !std::holds_alternative<Dict>(top()))) {
    fail("state is set on {}, which no checkpoint does; nothing was executed", quote(type_name(top())));
  }
}

// By their bytes; the names are those of CPython's pickletools. Without those of protocol 0 alone, whose texts cannot
// express torch.save's references to storages.
const Unpickler::Opcode Unpickler::opcodes[] = {
    {'N', 0, [](Unpickler& u, Number) { u.add(None{}); }},                                               // NONE
    {0x88, 0, [](Unpickler& u, Number) { u.add_bool(true); }},                                           // NEWTRUE
    {0x89, 0, [](Unpickler& u, Number) { u.add_bool(false); }},                                          // NEWFALSE
    {'J', 4, [](Unpickler& u, Number n) { u.add_integer(static_cast<std::int32_t>(n)); }},               // BININT
    {'K', 1, [](Unpickler& u, Number n) { u.add_integer(static_cast<std::int64_t>(n)); }},               // BININT1
    {'M', 2, [](Unpickler& u, Number n) { u.add_integer(static_cast<std::int64_t>(n)); }},               // BININT2
    {'I', 0, [](Unpickler& u, Number) { u.add_decimal(); }},                                             // INT
    {'L', 0, [](Unpickler& u, Number) { u.add_decimal(); }},                                             // LONG
    {0x8A, 1, [](Unpickler& u, Number n) { u.add_long(n); }},                                            // LONG1
    {0x8B, 4, [](Unpickler& u, Number n) { u.add_long(n); }},                                            // LONG4
    {'G', 8, [](Unpickler& u, Number n) { u.add_float(std::bit_cast<double>(__builtin_bswap64(n))); }},  // BINFLOAT
    {'C', 1, [](Unpickler& u, Number n) { u.add_skipped_bytes(n); }},                  // SHORT_BINBYTES
    {'B', 4, [](Unpickler& u, Number n) { u.add_skipped_bytes(n); }},                  // BINBYTES
    {0x8E, 8, [](Unpickler& u, Number n) { u.add_skipped_bytes(n); }},                 // BINBYTES8
    {0x96, 8, [](Unpickler& u, Number n) { u.add_skipped_bytes(n); }},                 // BYTEARRAY8
    {'T', 4, [](Unpickler& u, Number n) { u.add_text(n); }},                           // BINSTRING
    {'U', 1, [](Unpickler& u, Number n) { u.add_text(n); }},                           // SHORT_BINSTRING
    {'X', 4, [](Unpickler& u, Number n) { u.add_text(n); }},                           // BINUNICODE
    {0x8C, 1, [](Unpickler& u, Number n) { u.add_text(n); }},                          // SHORT_BINUNICODE
    {0x8D, 8, [](Unpickler& u, Number n) { u.add_text(n); }},                          // BINUNICODE8
    {']', 0, [](Unpickler& u, Number) { u.add_container<List>(0); }},                  // EMPTY_LIST
    {')', 0, [](Unpickler& u, Number) { u.add_container<Tuple>(0); }},                 // EMPTY_TUPLE
    {'}', 0, [](Unpickler& u, Number) { u.add_dict(0); }},                             // EMPTY_DICT
    {0x8F, 0, [](Unpickler& u, Number) { u.add_container<Set>(0); }},                  // EMPTY_SET
    {'l', 0, [](Unpickler& u, Number) { u.add_container<List>(u.take_mark()); }},      // LIST
    {'t', 0, [](Unpickler& u, Number) { u.add_container<Tuple>(u.take_mark()); }},     // TUPLE
    {0x91, 0, [](Unpickler& u, Number) { u.add_container<Set>(u.take_mark()); }},      // FROZENSET
    {'d', 0, [](Unpickler& u, Number) { u.add_dict(u.take_mark()); }},                 // DICT
    {0x85, 0, [](Unpickler& u, Number) { u.add_container<Tuple>(1); }},                // TUPLE1
    {0x86, 0, [](Unpickler& u, Number) { u.add_container<Tuple>(2); }},                // TUPLE2
    {0x87, 0, [](Unpickler& u, Number) { u.add_container<Tuple>(3); }},                // TUPLE3
    {'a', 0, [](Unpickler& u, Number) { u.add_items<List>(1, "list"); }},              // APPEND
    {'e', 0, [](Unpickler& u, Number) { u.add_items<List>(u.take_mark(), "list"); }},  // APPENDS
    {0x90, 0, [](Unpickler& u, Number) { u.add_items<Set>(u.take_mark(), "set"); }},   // ADDITEMS
    {'s', 0, [](Unpickler& u, Number) { u.add_pairs(2); }},                            // SETITEM
    {'u', 0, [](Unpickler& u, Number) { u.add_pairs(u.take_mark()); }},                // SETITEMS
    {'(', 0, [](Unpickler& u, Number) { u.mark(); }},                                  // MARK
    {'0', 0, [](Unpickler& u, Number) { u.drop(); }},                                  // POP
    {'1', 0, [](Unpickler& u, Number) { u.pop_items(u.take_mark()); }},                // POP_MARK
    {'2', 0, [](Unpickler& u, Number) { u.top(), u.push(u.stack_.back()); }},          // DUP
    {0x80, 1, [](Unpickler& u, Number n) { u.check_protocol(n); }},                    // PROTO
    {0x95, 8, [](Unpickler& u, Number n) { u.check_frame(n); }},                       // FRAME
    {'q', 1, [](Unpickler& u, Number n) { u.remember(n); }},                           // BINPUT
    {'r', 4, [](Unpickler& u, Number n) { u.remember(n); }},                           // LONG_BINPUT
    {0x94, 0, [](Unpickler& u, Number) { u.remember(u.memo_.size()); }},               // MEMOIZE
    {'h', 1, [](Unpickler& u, Number n) { u.recall(n); }},                             // BINGET
    {'j', 4, [](Unpickler& u, Number n) { u.recall(n); }},                             // LONG_BINGET
    {'c', 0, [](Unpickler& u, Number) { u.read_global(); }},                           // GLOBAL
    {0x93, 0, [](Unpickler& u, Number) { u.name_global(); }},                          // STACK_GLOBAL
    {'i', 0, [](Unpickler& u, Number) { u.construct(true); }},                         // INST
    {'o', 0, [](Unpickler& u, Number) { u.construct(false); }},                        // OBJ
    {'R', 0, [](Unpickler& u, Number) { u.apply(); }},                                 // REDUCE
    {0x81, 0, [](Unpickler& u, Number) { u.apply(); }},                                // NEWOBJ
    {'b', 0, [](Unpickler& u, Number) { u.build(); }},                                 // BUILD
    {'Q', 0, [](Unpickler& u, Number) { u.add_storage(); }},                           // BINPERSID
};

Unpickler::Unpickler(ByteReader& reader) : reader_(reader) {
  document_.texts = std::make_unique<std::pmr::monotonic_buffer_resource>();
  for (const Opcode& opcode : opcodes) by_byte_[opcode.byte] = &opcode;
}

Document Unpickler::run() {
  for (;;) {
    const std::size_t offset = reader_.position();
    const auto byte = reader_.read<std::uint8_t>();
    if (byte == '.') break;  // STOP
    const Opcode* const opcode = by_byte_[byte];
    if (!opcode) fail("byte {:#04x} at offset {} is not an opcode of plain data", byte, offset);
    std::uint64_t number = 0;
    std::memcpy(&number, reader_.take(opcode->width).data(), opcode->width);
    opcode->run(*this, number);
  }
  document_.top = pop();
  return std::move(document_);
}

struct TypeName {
  std::string_view operator()(const None&) const { return "None"; }
  std::string_view operator()(bool) const { return "bool"; }
  std::string_view operator()(std::int64_t) const { return "int"; }
  std::string_view operator()(double) const { return "float"; }
  std::string_view operator()(const Text&) const { return "str"; }
  std::string_view operator()(const Bytes&) const { return "bytes"; }
  std::string_view operator()(const BigInteger&) const { return "int"; }
  std::string_view operator()(const List&) const { return "list"; }
  std::string_view operator()(const Tuple&) const { return "tuple"; }
  std::string_view operator()(const Set&) const { return "set"; }
  std::string_view operator()(const Dict&) const { return "dict"; }
  std::string_view operator()(const Global& global) const { return global.name; }
  std::string_view operator()(const PersistentId&) const { return "storage"; }
  std::string_view operator()(const Call& call) const { return call.callable; }
};

}  // namespace

Document unpickle(ByteReader& reader) {
  return Unpickler(reader).run();
}

std::string_view type_name(const Value& value) {
  return std::visit(TypeName{}, value);
}

}  // namespace minimind::pickle
