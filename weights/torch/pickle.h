#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

// A reader of Python pickles that builds plain data and can run nothing: all that the pickle calls is looked up in an
// allow-list (pickle.cpp) and, if listed, recorded as data; anything else is an Error that names it.
namespace minimind::pickle {

// A value of a Document, by position. Containers refer to their items so, and a value that the pickle shares or that
// contains itself is stored once: nothing here is copied, freed or walked recursively.
using Id = std::uint32_t;

struct None {};
struct Text {
  std::string_view text;  // as in the file: UTF-8 unless Python 2 wrote it
};
struct Bytes {
  std::string_view bytes;
};
struct BigInteger {
  std::string_view little_endian;  // two's complement, more than 8 bytes
};
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
// What torch.save writes instead of a storage.
struct PersistentId {
  Id id;
};
// An allow-listed callable and the arguments, a Tuple, it would be called with. It was not called.
struct Call {
  std::string_view callable;
  Id arguments;
};

using Value = std::variant<None, bool, std::int64_t, double, Text, Bytes, BigInteger, List, Tuple, Set, Dict, Global,
                           PersistentId, Call>;

// One pickle. What BUILD sets on an object (the version record on a state dict, say) is dropped: weights are never
// there. Texts point into the bytes it was read from, which must outlive it.
struct Document {
  std::deque<Value> values;
  Id top = 0;
  std::size_t size_in_bytes = 0;  // of the pickle, up to and including STOP

  const Value& at(Id id) const { return values[id]; }
};

// The most values, stack entries, marks and memo entries one pickle may have, and the most items of all its containers
// together. A checkpoint of MiniMind has some thousands of each; at these limits reading takes less than 1 GB. A value
// or an item takes at least one byte of the pickle, so a small file is always cheap. Nesting is not limited: nothing
// recurses.
inline constexpr std::size_t most_values = std::size_t{1} << 23;
inline constexpr std::size_t most_items = 2 * most_values;

// Reads the pickle (protocols 0 to 5) at the start of `bytes`; what follows STOP is not looked at. Throws Error,
// starting with `where`, for a pickle that is corrupt, is truncated, passes a limit or names what is not allow-listed.
Document unpickle(std::span<const std::byte> bytes, const std::string& where);

// What Python calls the type of a value, for messages: "dict", "int" ...; for a Call and a Global, their name.
std::string_view type_name(const Value& value);

}  // namespace minimind::pickle
