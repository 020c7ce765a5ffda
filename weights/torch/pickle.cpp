#include "weights/torch/pickle.h"

#include <fmt/core.h>

#include <algorithm>
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

// The opcodes, with the names and numbers of CPython's pickletools.
enum class Op : std::uint8_t {
  MARK = '(',
  STOP = '.',
  POP = '0',
  POP_MARK = '1',
  DUP = '2',
  FLOAT = 'F',
  INT = 'I',
  BININT = 'J',
  BININT1 = 'K',
  LONG = 'L',
  BININT2 = 'M',
  NONE = 'N',
  PERSID = 'P',
  BINPERSID = 'Q',
  REDUCE = 'R',
  STRING = 'S',
  BINSTRING = 'T',
  SHORT_BINSTRING = 'U',
  UNICODE = 'V',
  BINUNICODE = 'X',
  APPEND = 'a',
  BUILD = 'b',
  GLOBAL = 'c',
  DICT = 'd',
  EMPTY_DICT = '}',
  APPENDS = 'e',
  GET = 'g',
  BINGET = 'h',
  INST = 'i',
  LONG_BINGET = 'j',
  LIST = 'l',
  EMPTY_LIST = ']',
  OBJ = 'o',
  PUT = 'p',
  BINPUT = 'q',
  LONG_BINPUT = 'r',
  SETITEM = 's',
  TUPLE = 't',
  EMPTY_TUPLE = ')',
  SETITEMS = 'u',
  BINFLOAT = 'G',
  BINBYTES = 'B',
  SHORT_BINBYTES = 'C',
  PROTO = 0x80,
  NEWOBJ,
  EXT1,
  EXT2,
  EXT4,
  TUPLE1,
  TUPLE2,
  TUPLE3,
  NEWTRUE,
  NEWFALSE,
  LONG1,
  LONG4,
  SHORT_BINUNICODE,
  BINUNICODE8,
  BINBYTES8,
  EMPTY_SET,
  ADDITEMS,
  FROZENSET,
  NEWOBJ_EX,
  STACK_GLOBAL,
  MEMOIZE,
  FRAME,
  BYTEARRAY8,
  NEXT_BUFFER,
  READONLY_BUFFER
};

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

std::optional<Value> read_number(Op op, ByteReader& reader) {
  switch (op) {
    case Op::NONE:
      return None{};
    case Op::NEWTRUE:
      return true;
    case Op::NEWFALSE:
      return false;
    case Op::BININT:
      return std::int64_t{reader.read<std::int32_t>()};
    case Op::BININT1:
      return std::int64_t{reader.read<std::uint8_t>()};
    case Op::BININT2:
      return std::int64_t{reader.read<std::uint16_t>()};
    case Op::INT:
      return read_decimal(reader);
    case Op::LONG:
      return read_long_decimal(reader);
    case Op::LONG1:
      return read_long(reader.read<std::uint8_t>(), reader);
    case Op::LONG4:
      return read_long(reader.read<std::uint32_t>(), reader);
    case Op::FLOAT:
      return parse_number<double>(reader.take_line(), reader);
    case Op::BINFLOAT:
      return read_binary_float(reader);
    default:
      return std::nullopt;
  }
}

Value skip_bytes(std::uint64_t size, ByteReader& reader) {
  reader.skip(size);
  return Bytes{};
}

std::optional<Value> read_bytes(Op op, ByteReader& reader) {
  switch (op) {
    case Op::SHORT_BINBYTES:
      return skip_bytes(reader.read<std::uint8_t>(), reader);
    case Op::BINBYTES:
      return skip_bytes(reader.read<std::uint32_t>(), reader);
    case Op::BINBYTES8:
    case Op::BYTEARRAY8:
      return skip_bytes(reader.read<std::uint64_t>(), reader);
    default:
      return std::nullopt;
  }
}

// Returns the value that `op` alone describes, its argument read from `reader`: None, a bool, a number or bytes.
// std::nullopt if `op` is not of this group.
std::optional<Value> read_scalar(Op op, ByteReader& reader) {
  auto value = read_number(op, reader);
  return value ? value : read_bytes(op, reader);
}

class Unpickler {
 public:
  explicit Unpickler(ByteReader& reader) : reader_(reader) {
    document_.texts = std::make_unique<std::pmr::monotonic_buffer_resource>();
  }

  Document run();

 private:
  // Each performs `op` and returns true if `op` belongs to its group of opcodes.
  bool read_text(Op op);
  bool build_container(Op op);
  bool add_items(Op op);
  bool use_stack(Op op);
  bool use_memo(Op op);
  bool name_or_call(Op op);

  Text kept(std::string_view text);
  Text take_text(std::uint64_t size);
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
  void add_pairs(Dict& dict, std::vector<Id> items);

  void add_global(std::string_view module, std::string_view name);
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

Text Unpickler::take_text(std::uint64_t size) {
  if (size > most_text) fail(fmt::format("a string of {} bytes, expected at most {}", size, most_text));
  return kept(reader_.take_text(size));
}

bool Unpickler::read_text(Op op) {
  switch (op) {
    case Op::STRING:
      return add(kept(read_quoted_text(reader_))), true;
    case Op::UNICODE:
      return add(kept(unescaped(reader_.take_line(), reader_))), true;
    case Op::BINSTRING:
    case Op::BINUNICODE:
      return add(take_text(reader_.read<std::uint32_t>())), true;
    case Op::SHORT_BINSTRING:
    case Op::SHORT_BINUNICODE:
      return add(take_text(reader_.read<std::uint8_t>())), true;
    case Op::BINUNICODE8:
      return add(take_text(reader_.read<std::uint64_t>())), true;
    default:
      return false;
  }
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

void Unpickler::add_pairs(Dict& dict, std::vector<Id> items) {
  if (items.size() % 2 != 0) fail("a key of a dict has no value");
  for (std::size_t i = 0; i < items.size(); i += 2) dict.entries.emplace_back(items[i], items[i + 1]);
}

bool Unpickler::build_container(Op op) {
  switch (op) {
    case Op::EMPTY_LIST:
      return add(List{}), true;
    case Op::EMPTY_TUPLE:
      return add(Tuple{}), true;
    case Op::EMPTY_DICT:
      return add(Dict{}), true;
    case Op::EMPTY_SET:
      return add(Set{}), true;
    case Op::LIST:
      return add(List{pop_to_mark()}), true;
    case Op::TUPLE:
      return add(Tuple{pop_to_mark()}), true;
    case Op::FROZENSET:
      return add(Set{pop_to_mark()}), true;
    case Op::DICT: {
      Dict dict;
      add_pairs(dict, pop_to_mark());
      return add(std::move(dict)), true;
    }
    case Op::TUPLE1:
      return add(Tuple{pop_items(1)}), true;
    case Op::TUPLE2:
      return add(Tuple{pop_items(2)}), true;
    case Op::TUPLE3:
      return add(Tuple{pop_items(3)}), true;
    default:
      return false;
  }
}

bool Unpickler::add_items(Op op) {
  const bool one = op == Op::APPEND || op == Op::SETITEM;
  if (!one && op != Op::APPENDS && op != Op::SETITEMS && op != Op::ADDITEMS) return false;
  const std::size_t count = op == Op::APPEND ? 1 : 2;
  const std::vector<Id> items = one ? pop_items(count) : pop_to_mark();
  if (op == Op::SETITEM || op == Op::SETITEMS) {
    add_pairs(top_as<Dict>("dict"), items);
  } else {
    auto& target = op == Op::ADDITEMS ? top_as<Set>("set").items : top_as<List>("list").items;
    target.insert(target.end(), items.begin(), items.end());
  }
  return true;
}

bool Unpickler::use_stack(Op op) {
  switch (op) {
    case Op::MARK:
      if (marks_.size() >= most_values) fail(fmt::format("more than {} marks", most_values));
      return marks_.push_back(stack_.size()), true;
    case Op::POP:  // Python also accepts it for removing a mark
      return stack_.size() > floor() ? void(pop()) : void(pop_to_mark()), true;
    case Op::POP_MARK:
      return pop_to_mark(), true;
    case Op::DUP:
      top();
      return push(stack_.back()), true;
    case Op::PROTO: {
      const int protocol = reader_.read<std::uint8_t>();
      if (protocol > 5) fail(fmt::format("the protocol is {}, expected 0 to 5", protocol));
      return true;
    }
    case Op::FRAME: {
      const auto size = reader_.read<std::uint64_t>();
      if (size > reader_.remaining()) fail(fmt::format("a frame of {} bytes passes the end", size));
      return true;
    }
    default:
      return false;
  }
}

bool Unpickler::use_memo(Op op) {
  switch (op) {
    case Op::PUT:
      return remember(read_index()), true;
    case Op::BINPUT:
      return remember(reader_.read<std::uint8_t>()), true;
    case Op::LONG_BINPUT:
      return remember(reader_.read<std::uint32_t>()), true;
    case Op::MEMOIZE:
      return remember(memo_.size()), true;
    case Op::GET:
      return recall(read_index()), true;
    case Op::BINGET:
      return recall(reader_.read<std::uint8_t>()), true;
    case Op::LONG_BINGET:
      return recall(reader_.read<std::uint32_t>()), true;
    default:
      return false;
  }
}

bool Unpickler::name_or_call(Op op) {
  switch (op) {
    case Op::GLOBAL: {
      const std::string module(reader_.take_line());
      return add_global(module, reader_.take_line()), true;
    }
    case Op::STACK_GLOBAL: {
      const Id name = pop();
      const auto* name_text = std::get_if<Text>(&document_.at(name));
      const auto* module_text = std::get_if<Text>(&document_.at(pop()));
      if (name_text == nullptr || module_text == nullptr) fail("a name is not a string");
      return add_global(module_text->text, name_text->text), true;
    }
    case Op::INST:
    case Op::OBJ: {
      std::vector<Id> items = pop_to_mark();
      if (op == Op::INST) {
        const std::string module(reader_.take_line());
        add_global(module, reader_.take_line());
        items.insert(items.begin(), pop());
      }
      if (items.empty()) fail("an object has no class");
      add(Tuple{{items.begin() + 1, items.end()}});
      const Id arguments = pop();
      return call(items.front(), arguments), true;
    }
    case Op::REDUCE:
    case Op::NEWOBJ: {
      const Id arguments = pop();
      return call(pop(), arguments), true;
    }
    case Op::BUILD:
      return build(), true;
    case Op::PERSID:
      add(kept(reader_.take_line()));
      return add(PersistentId{pop()}), true;
    case Op::BINPERSID:
      return add(PersistentId{pop()}), true;
    default:
      return false;
  }
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

Document Unpickler::run() {
  for (;;) {
    const std::size_t offset = reader_.position();
    const auto op = static_cast<Op>(reader_.read<std::uint8_t>());
    if (op == Op::STOP) break;
    if (auto scalar = read_scalar(op, reader_)) {
      add(std::move(*scalar));
    } else if (!(read_text(op) || use_memo(op) || use_stack(op) || build_container(op) || add_items(op) ||
                 name_or_call(op))) {
      fail(fmt::format("byte {:#04x} at offset {} is not an opcode of plain data", static_cast<int>(op), offset));
    }
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
