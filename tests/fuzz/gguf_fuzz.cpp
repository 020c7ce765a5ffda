#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/fuzz/mutate.h"
#include "tests/support/little_endian.h"
#include "tests/support/read_bytes.h"
#include "weights/gguf/gguf_model.h"
#include "weights/io/byte_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  minimind::read_bytes(data, size, minimind::read_gguf_model);
  return 0;
}

namespace {

using namespace minimind;

constexpr std::uint32_t string_type = 8, array_type = 9, last_type = 12;
constexpr std::size_t sizes_of_types[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
constexpr std::size_t alignment = 32;

// A GGUF file in pieces, read without any judgement.
struct Pieces {
  struct Value {
    std::string key;
    std::uint32_t type = 0;
    bool is_array = false;
    std::vector<std::string> items{};  // one if it is not an array
  };
  struct Tensor {
    std::string name;
    std::vector<std::uint64_t> sizes{};
    std::uint32_t type = 0;
    std::uint64_t offset = 0;
  };
  std::uint32_t version = 3;
  std::vector<Value> values{};
  std::vector<Tensor> tensors{};
  std::string data{};
};

std::string take_string(ByteReader& reader) {
  return std::string(reader.take_text(reader.read<std::uint64_t>()));
}

Pieces::Value take_value(ByteReader& reader) {
  Pieces::Value value{.key = take_string(reader), .type = reader.read<std::uint32_t>()};
  std::uint64_t count = 1;
  if ((value.is_array = value.type == array_type)) {
    value.type = reader.read<std::uint32_t>();
    count = reader.read<std::uint64_t>();
  }
  if (value.type > last_type || value.type == array_type) reader.fail("no such type");
  for (std::uint64_t i = 0; i < count; ++i) {
    value.items.push_back(value.type == string_type ? take_string(reader)
                                                    : std::string(reader.take_text(sizes_of_types[value.type])));
  }
  return value;
}

Pieces::Tensor take_tensor(ByteReader& reader) {
  Pieces::Tensor tensor{.name = take_string(reader)};
  for (std::uint32_t left = reader.read<std::uint32_t>(); left > 0; --left) {
    tensor.sizes.push_back(reader.read<std::uint64_t>());
  }
  tensor.type = reader.read<std::uint32_t>();
  tensor.offset = reader.read<std::uint64_t>();
  return tensor;
}

Pieces pieces_of(std::string_view file) {
  ByteReader reader({reinterpret_cast<const std::byte*>(file.data()), file.size()}, "");
  reader.take(4);
  Pieces pieces{.version = reader.read<std::uint32_t>()};
  const auto tensors = reader.read<std::uint64_t>(), values = reader.read<std::uint64_t>();
  for (std::uint64_t i = 0; i < values; ++i) pieces.values.push_back(take_value(reader));
  for (std::uint64_t i = 0; i < tensors; ++i) pieces.tensors.push_back(take_tensor(reader));
  reader.take(std::min<std::size_t>(reader.remaining(), (alignment - reader.position() % alignment) % alignment));
  pieces.data = reader.take_text(reader.remaining());
  return pieces;
}

std::string with_length(const std::string& text) {
  return little_endian(std::uint64_t{text.size()}) + text;
}

std::string file_of(const Pieces& pieces) {
  std::string file = "GGUF" + little_endian(pieces.version) + little_endian(std::uint64_t{pieces.tensors.size()}) +
                     little_endian(std::uint64_t{pieces.values.size()});
  for (const auto& value : pieces.values) {
    file += with_length(value.key);
    if (value.is_array) file += little_endian(array_type);
    file += little_endian(value.type);
    if (value.is_array) file += little_endian(std::uint64_t{value.items.size()});
    for (std::string item : value.items) {
      if (value.type != string_type) item.resize(sizes_of_types[value.type]);
      file += value.type == string_type ? with_length(item) : item;
    }
  }
  for (const auto& tensor : pieces.tensors) {
    file += with_length(tensor.name) + little_endian(static_cast<std::uint32_t>(tensor.sizes.size()));
    for (const std::uint64_t size : tensor.sizes) file += little_endian(size);
    file += little_endian(tensor.type) + little_endian(tensor.offset);
  }
  file.resize((file.size() + alignment - 1) / alignment * alignment);
  return file + pieces.data;
}

template <class List>
void change_list(List& list, Dice& dice) {
  const std::size_t at = dice.below(list.size());
  const auto copy = list[at];
  if (dice.one_in(3)) {
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(at));
  } else if (dice.one_in(2)) {
    std::swap(list[at], list[dice.below(list.size())]);
  } else {
    list.insert(list.begin() + static_cast<std::ptrdiff_t>(dice.below(list.size())), copy);
  }
}

void change_value(Pieces& pieces, Dice& dice) {
  auto& value = dice.pick(pieces.values);
  switch (dice.below(6)) {
    case 0:
      value.key = dice.one_in(2) ? dice.pick(pieces.values).key : value.key + "x";
      break;
    case 1:
      value.type = static_cast<std::uint32_t>(dice.below(last_type + 1));
      if (value.type == array_type) value.type = 0;
      break;
    case 2:
      value.is_array = !value.is_array;
      value.items.resize(value.is_array ? dice.below(40) : 1);
      break;
    case 3:
      if (value.is_array && !value.items.empty()) change_list(value.items, dice);
      break;
    default:
      if (value.items.empty()) value.items.emplace_back();
      std::string& item = dice.pick(value.items);
      value.type == string_type ? mutate_bytes(item) : void(item = little_endian(dice.number()));
  }
}

void change_tensor(Pieces& pieces, Dice& dice) {
  auto& tensor = dice.pick(pieces.tensors);
  switch (dice.below(5)) {
    case 0:
      dice.one_in(2) ? mutate_bytes(tensor.name) : void(tensor.name = dice.pick(pieces.tensors).name);
      break;
    case 1:
      tensor.type = static_cast<std::uint32_t>(dice.below(43));
      break;
    case 2:
      tensor.offset = dice.one_in(2) ? dice.number() : dice.below(100) * alignment;
      break;
    case 3:
      if (!tensor.sizes.empty()) dice.pick(tensor.sizes) = dice.number();
      break;
    default:
      tensor.sizes.resize(dice.below(6), dice.number());
  }
}

}  // namespace

// Changes typed metadata and the list of tensors, and writes the right counts and lengths.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  return mutate_structure(data, size, max_size, seed,
                          [](std::string_view input, Dice& dice) -> std::optional<std::string> {
                            Pieces pieces;
                            try {
                              pieces = pieces_of(input);
                            } catch (const std::exception&) {
                              return std::nullopt;
                            }
                            for (std::size_t i = dice.below(3) + 1; i-- > 0;) {
                              const std::size_t choice = dice.below(12);
                              if (choice == 0) pieces.version = static_cast<std::uint32_t>(dice.below(5));
                              if (choice == 1) pieces.data.resize(dice.below(pieces.data.size() + 100));
                              if (choice == 2 && !pieces.values.empty()) change_list(pieces.values, dice);
                              if (choice == 3 && !pieces.tensors.empty()) change_list(pieces.tensors, dice);
                              if (choice > 3 && choice < 9 && !pieces.values.empty()) change_value(pieces, dice);
                              if (choice >= 9 && !pieces.tensors.empty()) change_tensor(pieces, dice);
                            }
                            return file_of(pieces);
                          });
}
