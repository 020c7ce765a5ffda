#include "weights/torch/pickle.h"

#include <fmt/core.h>

#include <optional>
#include <utility>

#include "weights/io/byte_reader.h"
#include "weights/io/quote.h"
#include "weights/torch/pickle_globals.h"
#include "weights/torch/pickle_opcodes.h"
#include "weights/torch/pickle_scalars.h"

namespace minimind::pickle {
namespace {

class Unpickler {
 public:
  Unpickler(std::span<const std::byte> bytes, const std::string& where) : reader_(bytes, where) {}

  Document run();

 private:
  // Each performs `op` if it belongs to that group of opcodes, and says whether it does.
  bool build_container(Op op);
  bool add_items(Op op);
  bool use_stack(Op op);
  bool use_memo(Op op);
  bool name_or_call(Op op);

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

  // The bottom of what may be popped: what lies below the last mark may not.
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  [[noreturn]] void fail(std::string_view reason) const {
    reader_.fail(fmt::format("damaged or hostile pickle: {} (before offset {})", reason, reader_.position()));
  }

  ByteReader reader_;
  Document document_;
  std::vector<Id> stack_;
  std::vector<std::size_t> marks_;  // heights of stack_
  std::vector<std::optional<Id>> memo_;
  std::size_t contained_items_ = 0;
};

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

// Items are shared values, so that there may be many more of them than there are values.
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
  if (marks_.empty()) fail("a mark is wanted and there is none");
  std::vector<Id> items = pop_items(stack_.size() - marks_.back());
  marks_.pop_back();
  return items;
}

Value& Unpickler::top() {
  if (stack_.size() <= floor()) fail("a value is wanted from an empty stack");
  return document_.values[stack_.back()];
}

template <typename T>
T& Unpickler::top_as(std::string_view wanted) {
  if (auto* value = std::get_if<T>(&top())) return *value;
  fail(fmt::format("items are added to a {}, not to a {}", type_name(top()), wanted));
}

// The protocol 0 form of a memo index.
std::uint64_t Unpickler::read_index() {
  return parse_index(reader_.take_line(), reader_);
}

// Picklers number their memo from 0 or 1 without gaps, so a larger index than there may be values is damage.
void Unpickler::remember(std::uint64_t index) {
  if (index >= most_values) fail(fmt::format("memo index {} is out of range", index));
  if (stack_.size() <= floor()) fail("a value is wanted from an empty stack");
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
    case Op::POP:  // Python lets it remove a mark, too
      return stack_.size() > floor() ? void(pop()) : void(pop_to_mark()), true;
    case Op::POP_MARK:
      return pop_to_mark(), true;
    case Op::DUP:
      top();
      return push(stack_.back()), true;
    case Op::PROTO: {
      const int protocol = reader_.read<std::uint8_t>();
      if (protocol > 5) fail(fmt::format("protocol {} is not known; 0 to 5 are", protocol));
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
      const std::string_view module = reader_.take_line();
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
        const std::string_view module = reader_.take_line();
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
      add(Text{reader_.take_line()});
      return add(PersistentId{pop()}), true;
    case Op::BINPERSID:
      return add(PersistentId{pop()}), true;
    default:
      return false;
  }
}

void Unpickler::add_global(std::string_view module, std::string_view name) {
  // Protocol 2 calls the module as Python 2 did.
  const std::string full_name = fmt::format("{}.{}", module == "__builtin__" ? "builtins" : module, name);
  const AllowedGlobal* allowed = find_allowed_global(full_name);
  if (allowed == nullptr) {
    reader_.fail(
        fmt::format("the pickle refers to {}, which is no part of plain weights; nothing was executed; if you "
                    "trust this file, load it in Python and torch.save(model.state_dict(), ...) again",
                    quoted(full_name)));
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
      fail(fmt::format("{} is called, which no checkpoint does; nothing was executed", quoted(global->name)));
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
  count_items(pairs->items.size());  // a pickle may pass the same list many times
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
    fail(fmt::format("state is set on {}, which no checkpoint does; nothing was executed", quoted(type_name(top()))));
  }
}

Document Unpickler::run() {
  for (;;) {
    const std::size_t offset = reader_.position();
    const auto op = static_cast<Op>(reader_.read<std::uint8_t>());
    if (op == Op::STOP) break;
    if (auto scalar = read_scalar(op, reader_)) {
      add(std::move(*scalar));
    } else if (!(use_memo(op) || use_stack(op) || build_container(op) || add_items(op) || name_or_call(op))) {
      fail(fmt::format("byte {:#04x} at offset {} is no opcode that data needs", static_cast<int>(op), offset));
    }
  }
  document_.top = pop();
  document_.size_in_bytes = reader_.position();
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

Document unpickle(std::span<const std::byte> bytes, const std::string& where) {
  return Unpickler(bytes, where).run();
}

std::string_view type_name(const Value& value) {
  return std::visit(TypeName{}, value);
}

}  // namespace minimind::pickle
