#include "weights/torch/pickle.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "weights/base/text.h"
#include "weights/io/byte_reader.h"

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

template <typename T>
T parse_number(std::string_view digits, const ByteReader& reader) {
  T value{};
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc{} || stop != end) {
    reader.fail(fmt::format("corrupt or hostile pickle: {} is not a 64-bit number", quote(digits)));
  }
  return value;
}

// The text forms of protocol 0. It cannot express torch.save's storage references, so its escapes are not decoded.
std::string_view unescaped(std::string_view text, const ByteReader& reader) {
  if (text.find('\\') != std::string_view::npos) {
    reader.fail("corrupt or hostile pickle: an escape of protocol 0, which torch.save cannot write");
  }
  return text;
}

std::string_view read_quoted_text(ByteReader& reader) {
  const std::string_view text = reader.take_line();
  if (text.size() < 2 || (text.front() != '\'' && text.front() != '"') || text.back() != text.front()) {
    reader.fail(fmt::format("corrupt or hostile pickle: the string {} has no quotes", quote(text)));
  }
  return unescaped(text.substr(1, text.size() - 2), reader);
}

// "00" and "01" are False and True in protocol 0.
Value read_decimal(ByteReader& reader) {
  const std::string_view digits = reader.take_line();
  if (digits == "00" || digits == "01") return digits == "01";
  return parse_number<std::int64_t>(digits, reader);
}

std::int64_t read_long_decimal(ByteReader& reader) {
  std::string_view digits = reader.take_line();
  if (digits.ends_with('L')) digits.remove_suffix(1);
  return parse_number<std::int64_t>(digits, reader);
}

// Two's complement of any size, the lowest byte first.
Value read_long(std::uint64_t size, ByteReader& reader) {
  if (size > sizeof(std::int64_t)) return reader.skip(size), BigInteger{};
  const std::string_view digits = reader.take_text(size);
  std::int64_t value = !digits.empty() && static_cast<signed char>(digits.back()) < 0 ? -1 : 0;
  std::memcpy(&value, digits.data(), digits.size());
  return value;
}

// The only big-endian number of a pickle.
double read_binary_float(ByteReader& reader) {
  return std::bit_cast<double>(__builtin_bswap64(reader.read<std::uint64_t>()));
}

class Unpickler {
 public:
  explicit Unpickler(ByteReader& reader);

  Document run();

 private:
  struct Opcode {
    std::uint8_t byte;
    void (*run)(Unpickler& own);
  };
  static const Opcode opcodes[];

  template <class Number>
  Number read() {
    return reader_.read<Number>();
  }
  Text kept(std::string_view text);
  void add_text(std::uint64_t size);
  void add_skipped_bytes(std::uint64_t size);
  void push(Id id);
  void add(Value value);
  Id pop();
  void count_items(std::size_t count);
  std::vector<Id> pop_items(std::size_t count);
  std::vector<Id> pop_to_mark();
  Value& top();
  template <typename T>
  T& top_as(std::string_view wanted);

  std::uint64_t read_index();
  void remember(std::uint64_t index);
  void recall(std::uint64_t index);
  Dict dict_of(const std::vector<Id>& items) const;
  template <class Container>
  void add_items(const std::vector<Id>& added, std::string_view wanted);
  void add_pairs(const std::vector<Id>& items);
  void mark();
  void drop();
  void check_protocol(int protocol) const;
  void check_frame(std::uint64_t size) const;

  void add_global(std::string_view module, std::string_view name);
  void read_global();
  void name_global();
  std::vector<Id> with_class(std::vector<Id> arguments);
  void construct(const std::vector<Id>& class_and_arguments);
  void apply();
  void call(Id callable, Id arguments);
  Dict ordered_dict(const Tuple& arguments);
  void build();

  // The bottom of the poppable stack: values below the last mark must stay.
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  [[noreturn]] void fail(std::string_view reason) const {
    reader_.fail(fmt::format("corrupt or hostile pickle: {} (before offset {})", reason, reader_.position()));
  }

  ByteReader& reader_;
  Document document_;
  std::size_t text_size_ = 0;  // of all strings
  std::vector<Id> stack_;
  std::vector<std::size_t> marks_;  // heights of stack_
  std::vector<std::optional<Id>> memo_;
  std::size_t contained_items_ = 0;
  std::array<void (*)(Unpickler& own), 256> run_{};  // by the opcode; null: none of plain data
};

// The reader keeps a text only until its next read.
Text Unpickler::kept(std::string_view text) {
  text_size_ += text.size();
  if (text_size_ > most_text) fail(fmt::format("more than {} bytes of strings", most_text));
  if (text.empty()) return {};
  char* const copy = static_cast<char*>(document_.texts->allocate(text.size(), 1));
  std::memcpy(copy, text.data(), text.size());
  return {{copy, text.size()}};
}

void Unpickler::add_text(std::uint64_t size) {
  if (size > most_text) fail(fmt::format("a string of {} bytes, expected at most {}", size, most_text));
  add(kept(reader_.take_text(size)));
}

void Unpickler::add_skipped_bytes(std::uint64_t size) {
  reader_.skip(size);
  add(Bytes{});
}

void Unpickler::push(Id id) {
  if (stack_.size() >= most_values) fail(fmt::format("more than {} values on the stack", most_values));
  stack_.push_back(id);
}

void Unpickler::add(Value value) {
  if (document_.values.size() >= most_values) fail(fmt::format("more than {} values", most_values));
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
  if (contained_items_ > most_items) fail(fmt::format("more than {} items in containers", most_items));
}

std::vector<Id> Unpickler::pop_items(std::size_t count) {
  if (stack_.size() - floor() < count) fail("a value is taken from an empty stack");
  count_items(count);
  const auto first = stack_.end() - static_cast<std::ptrdiff_t>(count);
  std::vector<Id> items(first, stack_.end());
  stack_.erase(first, stack_.end());
  return items;
}

std::vector<Id> Unpickler::pop_to_mark() {
  if (marks_.empty()) fail("the stack has no mark, expected one");
  std::vector<Id> items = pop_items(stack_.size() - marks_.back());
  marks_.pop_back();
  return items;
}

Value& Unpickler::top() {
  if (stack_.size() <= floor()) fail("the stack is empty, expected a value");
  return document_.values[stack_.back()];
}

template <typename T>
T& Unpickler::top_as(std::string_view wanted) {
  if (auto* value = std::get_if<T>(&top())) return *value;
  fail(fmt::format("items are added to a {}, not to a {}", type_name(top()), wanted));
}

// The protocol 0 form of a memo index.
std::uint64_t Unpickler::read_index() {
  return parse_number<std::uint64_t>(reader_.take_line(), reader_);
}

// Picklers number their memo from 0 or 1 without gaps, so an index over the limit on values is corrupt.
void Unpickler::remember(std::uint64_t index) {
  if (index >= most_values) fail(fmt::format("memo index {} is out of range", index));
  if (stack_.size() <= floor()) fail("the stack is empty, expected a value");
  if (index >= memo_.size()) memo_.resize(static_cast<std::size_t>(index) + 1);
  memo_[static_cast<std::size_t>(index)] = stack_.back();
}

void Unpickler::recall(std::uint64_t index) {
  if (index >= memo_.size() || !memo_[static_cast<std::size_t>(index)]) {
    fail(fmt::format("memo entry {} was never set", index));
  }
  push(*memo_[static_cast<std::size_t>(index)]);
}

Dict Unpickler::dict_of(const std::vector<Id>& items) const {
  if (items.size() % 2 != 0) fail("a key of a dict has no value");
  Dict dict;
  for (std::size_t i = 0; i < items.size(); i += 2) dict.entries.emplace_back(items[i], items[i + 1]);
  return dict;
}

void Unpickler::add_pairs(const std::vector<Id>& items) {
  const Dict added = dict_of(items);
  auto& entries = top_as<Dict>("dict").entries;
  entries.insert(entries.end(), added.entries.begin(), added.entries.end());
}

template <class Container>
void Unpickler::add_items(const std::vector<Id>& added, std::string_view wanted) {
  auto& items = top_as<Container>(wanted).items;
  items.insert(items.end(), added.begin(), added.end());
}

void Unpickler::mark() {
  if (marks_.size() >= most_values) fail(fmt::format("more than {} marks", most_values));
  marks_.push_back(stack_.size());
}

// Python also accepts it for removing a mark.
void Unpickler::drop() {
  stack_.size() > floor() ? void(pop()) : void(pop_to_mark());
}

void Unpickler::check_protocol(int protocol) const {
  if (protocol > 5) fail(fmt::format("the protocol is {}, expected 0 to 5", protocol));
}

void Unpickler::check_frame(std::uint64_t size) const {
  if (size > reader_.remaining()) fail(fmt::format("a frame of {} bytes passes the end", size));
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

// The class of an INST follows in two lines.
std::vector<Id> Unpickler::with_class(std::vector<Id> arguments) {
  read_global();
  arguments.insert(arguments.begin(), pop());
  return arguments;
}

void Unpickler::construct(const std::vector<Id>& class_and_arguments) {
  if (class_and_arguments.empty()) fail("an object has no class");
  add(Tuple{{class_and_arguments.begin() + 1, class_and_arguments.end()}});
  const Id arguments = pop();
  call(class_and_arguments.front(), arguments);
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
    fail(fmt::format("a {} is called with a {}; nothing was executed", type_name(document_.at(callable)),
                     type_name(document_.at(arguments))));
  }
  switch (find_allowed_global(global->name)->role) {
    case Role::mention:
      fail(fmt::format("{} is called, which no checkpoint does; nothing was executed", quote(global->name)));
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
    fail(fmt::format("state is set on {}, which no checkpoint does; nothing was executed", quote(type_name(top()))));
  }
}

// By their bytes; the names are those of CPython's pickletools.
const Unpickler::Opcode Unpickler::opcodes[] = {
    {'N', [](Unpickler& u) { u.add(None{}); }},                                                  // NONE
    {0x88, [](Unpickler& u) { u.add(true); }},                                                   // NEWTRUE
    {0x89, [](Unpickler& u) { u.add(false); }},                                                  // NEWFALSE
    {'J', [](Unpickler& u) { u.add(std::int64_t{u.read<std::int32_t>()}); }},                    // BININT
    {'K', [](Unpickler& u) { u.add(std::int64_t{u.read<std::uint8_t>()}); }},                    // BININT1
    {'M', [](Unpickler& u) { u.add(std::int64_t{u.read<std::uint16_t>()}); }},                   // BININT2
    {'I', [](Unpickler& u) { u.add(read_decimal(u.reader_)); }},                                 // INT
    {'L', [](Unpickler& u) { u.add(read_long_decimal(u.reader_)); }},                            // LONG
    {0x8A, [](Unpickler& u) { u.add(read_long(u.read<std::uint8_t>(), u.reader_)); }},           // LONG1
    {0x8B, [](Unpickler& u) { u.add(read_long(u.read<std::uint32_t>(), u.reader_)); }},          // LONG4
    {'F', [](Unpickler& u) { u.add(parse_number<double>(u.reader_.take_line(), u.reader_)); }},  // FLOAT
    {'G', [](Unpickler& u) { u.add(read_binary_float(u.reader_)); }},                            // BINFLOAT
    {'C', [](Unpickler& u) { u.add_skipped_bytes(u.read<std::uint8_t>()); }},                    // SHORT_BINBYTES
    {'B', [](Unpickler& u) { u.add_skipped_bytes(u.read<std::uint32_t>()); }},                   // BINBYTES
    {0x8E, [](Unpickler& u) { u.add_skipped_bytes(u.read<std::uint64_t>()); }},                  // BINBYTES8
    {0x96, [](Unpickler& u) { u.add_skipped_bytes(u.read<std::uint64_t>()); }},                  // BYTEARRAY8
    {'S', [](Unpickler& u) { u.add(u.kept(read_quoted_text(u.reader_))); }},                     // STRING
    {'V', [](Unpickler& u) { u.add(u.kept(unescaped(u.reader_.take_line(), u.reader_))); }},     // UNICODE
    {'T', [](Unpickler& u) { u.add_text(u.read<std::uint32_t>()); }},                            // BINSTRING
    {'U', [](Unpickler& u) { u.add_text(u.read<std::uint8_t>()); }},                             // SHORT_BINSTRING
    {'X', [](Unpickler& u) { u.add_text(u.read<std::uint32_t>()); }},                            // BINUNICODE
    {0x8C, [](Unpickler& u) { u.add_text(u.read<std::uint8_t>()); }},                            // SHORT_BINUNICODE
    {0x8D, [](Unpickler& u) { u.add_text(u.read<std::uint64_t>()); }},                           // BINUNICODE8
    {']', [](Unpickler& u) { u.add(List{}); }},                                                  // EMPTY_LIST
    {')', [](Unpickler& u) { u.add(Tuple{}); }},                                                 // EMPTY_TUPLE
    {'}', [](Unpickler& u) { u.add(Dict{}); }},                                                  // EMPTY_DICT
    {0x8F, [](Unpickler& u) { u.add(Set{}); }},                                                  // EMPTY_SET
    {'l', [](Unpickler& u) { u.add(List{u.pop_to_mark()}); }},                                   // LIST
    {'t', [](Unpickler& u) { u.add(Tuple{u.pop_to_mark()}); }},                                  // TUPLE
    {0x91, [](Unpickler& u) { u.add(Set{u.pop_to_mark()}); }},                                   // FROZENSET
    {'d', [](Unpickler& u) { u.add(u.dict_of(u.pop_to_mark())); }},                              // DICT
    {0x85, [](Unpickler& u) { u.add(Tuple{u.pop_items(1)}); }},                                  // TUPLE1
    {0x86, [](Unpickler& u) { u.add(Tuple{u.pop_items(2)}); }},                                  // TUPLE2
    {0x87, [](Unpickler& u) { u.add(Tuple{u.pop_items(3)}); }},                                  // TUPLE3
    {'a', [](Unpickler& u) { u.add_items<List>(u.pop_items(1), "list"); }},                      // APPEND
    {'e', [](Unpickler& u) { u.add_items<List>(u.pop_to_mark(), "list"); }},                     // APPENDS
    {0x90, [](Unpickler& u) { u.add_items<Set>(u.pop_to_mark(), "set"); }},                      // ADDITEMS
    {'s', [](Unpickler& u) { u.add_pairs(u.pop_items(2)); }},                                    // SETITEM
    {'u', [](Unpickler& u) { u.add_pairs(u.pop_to_mark()); }},                                   // SETITEMS
    {'(', [](Unpickler& u) { u.mark(); }},                                                       // MARK
    {'0', [](Unpickler& u) { u.drop(); }},                                                       // POP
    {'1', [](Unpickler& u) { u.pop_to_mark(); }},                                                // POP_MARK
    {'2', [](Unpickler& u) { u.top(), u.push(u.stack_.back()); }},                               // DUP
    {0x80, [](Unpickler& u) { u.check_protocol(u.read<std::uint8_t>()); }},                      // PROTO
    {0x95, [](Unpickler& u) { u.check_frame(u.read<std::uint64_t>()); }},                        // FRAME
    {'p', [](Unpickler& u) { u.remember(u.read_index()); }},                                     // PUT
    {'q', [](Unpickler& u) { u.remember(u.read<std::uint8_t>()); }},                             // BINPUT
    {'r', [](Unpickler& u) { u.remember(u.read<std::uint32_t>()); }},                            // LONG_BINPUT
    {0x94, [](Unpickler& u) { u.remember(u.memo_.size()); }},                                    // MEMOIZE
    {'g', [](Unpickler& u) { u.recall(u.read_index()); }},                                       // GET
    {'h', [](Unpickler& u) { u.recall(u.read<std::uint8_t>()); }},                               // BINGET
    {'j', [](Unpickler& u) { u.recall(u.read<std::uint32_t>()); }},                              // LONG_BINGET
    {'c', [](Unpickler& u) { u.read_global(); }},                                                // GLOBAL
    {0x93, [](Unpickler& u) { u.name_global(); }},                                               // STACK_GLOBAL
    {'i', [](Unpickler& u) { u.construct(u.with_class(u.pop_to_mark())); }},                     // INST
    {'o', [](Unpickler& u) { u.construct(u.pop_to_mark()); }},                                   // OBJ
    {'R', [](Unpickler& u) { u.apply(); }},                                                      // REDUCE
    {0x81, [](Unpickler& u) { u.apply(); }},                                                     // NEWOBJ
    {'b', [](Unpickler& u) { u.build(); }},                                                      // BUILD
    {'P', [](Unpickler& u) { u.add(u.kept(u.reader_.take_line())), u.add(PersistentId{u.pop()}); }},  // PERSID
    {'Q', [](Unpickler& u) { u.add(PersistentId{u.pop()}); }},                                        // BINPERSID
};

Unpickler::Unpickler(ByteReader& reader) : reader_(reader) {
  document_.texts = std::make_unique<std::pmr::monotonic_buffer_resource>();
  for (const Opcode& opcode : opcodes) run_[opcode.byte] = opcode.run;
}

Document Unpickler::run() {
  for (;;) {
    const std::size_t offset = reader_.position();
    const auto opcode = reader_.read<std::uint8_t>();
    if (opcode == '.') break;  // STOP
    if (!run_[opcode]) fail(fmt::format("byte {:#04x} at offset {} is not an opcode of plain data", opcode, offset));
    run_[opcode](*this);
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
