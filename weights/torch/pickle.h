#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <memory_resource>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "weights/io/byte_reader.h"

// A reader of Python pickles that builds plain data and executes nothing. Each callable is looked up in an allow-list
// (pickle.cpp) and, if listed, recorded as data. Any other callable throws Error naming it.
namespace minimind::pickle {

// The index of a value in a Document. Containers refer to their items by index. A value that the pickle shares, or that
// contains itself, is stored once: nothing here is copied, freed or walked recursively.
using Id = std::uint32_t;

struct None {};
struct Text {
  std::string_view text;  // as in the file: UTF-8 unless Python 2 wrote it
};
struct Bytes {};       // not read, because weights have none
struct BigInteger {};  // of more than 64 bits; not read
struct List {
  std::vector<Id> items;
};
struct Tuple {
  std::vector<Id> items;
};
struct Set {
  std::vector<Id> items;
};
// A dict or OrderedDict in the order of writing. A key that the pickle sets twice is repeated.
struct Dict {
  std::vector<std::pair<Id, Id>> entries;
};
// An allow-listed name that is mentioned, not called: a dtype, a storage class.
struct Global {
  std::string_view name;
};
// torch.save's placeholder for a storage.
struct PersistentId {
  Id id;
};
// An allow-listed callable and its arguments, a Tuple. It was not called.
struct Call {
  std::string_view callable;
  Id arguments;
};

using Value = std::variant<None, bool, std::int64_t, double, Text, Bytes, BigInteger, List, Tuple, Set, Dict, Global,
                           PersistentId, Call>;

// One pickle. State that BUILD sets on an object, such as the version record of a state dict, is dropped: it never has
// weights.
struct Document {
  std::deque<Value> values;
  Id top = 0;
  std::unique_ptr<std::pmr::monotonic_buffer_resource> texts;  // what the strings of `values` point to

  const Value& at(Id id) const { return values[id]; }
};

// The limit on values, stack entries, marks and memo entries of one pickle, on the items of all its containers
// together, and on the bytes of its strings. A checkpoint of MiniMind has some thousands of each; at these limits
// reading takes less than 300 MB. A value or an item takes at least one byte of the pickle, so a small file is always
// cheap. Nesting is not limited: nothing recurses.
inline constexpr std::size_t most_values = std::size_t{1} << 21;
inline constexpr std::size_t most_items = 2 * most_values;
inline constexpr std::size_t most_text = std::size_t{1} << 26;

// Reads a pickle (protocols 1 to 5), up to and including STOP. Throws Error, starting with the reader's prefix, for a
// pickle that is corrupt, is truncated, exceeds a limit or names a callable that is not allow-listed.
Document unpickle(ByteReader& reader);

// Returns Python's name of a value's type, for messages: "dict", "int" ...; for a Call and a Global, their name.
std::string_view type_name(const Value& value);

}  // namespace minimind::pickle
