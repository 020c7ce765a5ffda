#include "weights/torch/pth.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "weights/base/error.h"
#include "weights/base/text.h"
#include "weights/io/byte_reader.h"
#include "weights/tensor/shape.h"
#include "weights/torch/pickle.h"
#include "weights/torch/torch_tensor.h"
#include "weights/torch/zip.h"

namespace minimind {
namespace {

using pickle::Dict;
using pickle::Document;
using pickle::Value;

constexpr std::string_view zip_magic = "PK\x03\x04";
constexpr std::string_view empty_zip_magic = "PK\x05\x06";
// 0x1950a86a20f9469cfc6c, as a pickle writes it, and the end of that pickle.
constexpr std::string_view legacy_magic = "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
constexpr std::int64_t legacy_protocol = 1001;

// The parts of a torch.save file: the pickled object, and where its storages are.
struct Archive {
  Document document;
  StorageParts storages;
};

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool looks_like_zip(std::span<const std::byte> bytes) {
  return as_text(bytes).starts_with(zip_magic) || as_text(bytes).starts_with(empty_zip_magic);
}

// PROTO and its number, from protocol 4 on FRAME and its size, then the magic number.
bool looks_like_legacy(std::span<const std::byte> bytes) {
  const std::string_view start = as_text(bytes.first(std::min<std::size_t>(bytes.size(), 32)));
  return start.starts_with('\x80') && start.find(legacy_magic) != std::string_view::npos;
}

// torch.save names the folder inside the archive after the file: `<prefix>/data.pkl`, `<prefix>/data/0`, ...
std::string find_prefix(const ZipMembers& members, const std::string& path) {
  std::string prefix;
  for (const auto& [name, place] : members) {
    const std::size_t slash = name.find('/');
    if (slash == std::string::npos || name.substr(slash) != "/data.pkl") continue;
    if (!prefix.empty())
      throw Error(fmt::format("{}: has two data.pkl members, expected one, as torch.save writes", path));
    prefix = name.substr(0, slash + 1);
  }
  if (prefix.empty())
    throw Error(
        fmt::format("{}: is a zip archive without data.pkl: not from torch.save; if a model was packed into it, unpack "
                    "it and name the model",
                    path));
  return prefix;
}

void check_byte_order(const InputFile& file, FilePart place) {
  constexpr std::size_t longest = 32;
  ByteReader reader(file, {place.offset, std::min(place.size, longest)}, file.path() + ": byteorder");
  const std::string_view order = reader.take_text(reader.remaining());
  if (order == "little") return;
  throw Error(fmt::format("{}: byte order is {}, expected 'little'; save it again on a little-endian machine",
                          file.path(), quote(order)));
}

Archive open_zip(const InputFile& file) {
  const ZipMembers members = read_zip_directory(file);
  const std::string prefix = find_prefix(members, file.path());
  Archive archive;
  for (const auto& [name, place] : members) {
    if (!name.starts_with(prefix)) continue;
    const std::string_view part = std::string_view(name).substr(prefix.size());
    if (part == "constants.pkl" || part.starts_with("code/")) {
      throw Error(
          fmt::format("{}: is a TorchScript program (it has {}), not weights; torch.save(model.state_dict(), ...)",
                      file.path(), quote(name)));
    }
    if (part == "byteorder") check_byte_order(file, place);
    if (part.starts_with("data/")) archive.storages.emplace(part.substr(5), place);
  }
  ByteReader reader(file, members.at(prefix + "data.pkl"), file.path() + ": data.pkl");
  archive.document = pickle::unpickle(reader);
  return archive;
}

// Reads the pickle of `part` at the position of `reader`.
Document take_pickle(ByteReader& reader, const InputFile& file, std::string_view part) {
  reader.set_where(fmt::format("{}: {}", file.path(), part));
  Document document = pickle::unpickle(reader);
  reader.set_where(file.path());
  return document;
}

bool says_little_endian(const Document& system) {
  const auto* dict = std::get_if<Dict>(&system.at(system.top));
  return dict != nullptr && std::any_of(dict->entries.begin(), dict->entries.end(), [&](const auto& entry) {
           const auto* name = std::get_if<pickle::Text>(&system.at(entry.first));
           const auto* truth = std::get_if<bool>(&system.at(entry.second));
           return name != nullptr && name->text == "little_endian" && truth != nullptr && *truth;
         });
}

void check_legacy_header(ByteReader& reader, const InputFile& file) {
  take_pickle(reader, file, "legacy magic number");
  const Document protocol = take_pickle(reader, file, "legacy protocol version");
  const auto* version = std::get_if<std::int64_t>(&protocol.at(protocol.top));
  if (version == nullptr || *version != legacy_protocol) {
    reader.fail(fmt::format("the legacy protocol version is not {}; the file is corrupt", legacy_protocol));
  }
  if (!says_little_endian(take_pickle(reader, file, "legacy system information"))) {
    reader.fail("was not written on a little-endian machine; save it again on one");
  }
}

// The element size of every storage that the object refers to; the storages themselves do not state it.
std::map<std::string, std::size_t, std::less<>> element_sizes(const Document& document, const std::string& path) {
  std::map<std::string, std::size_t, std::less<>> sizes;
  for (const Value& value : document.values) {
    const auto* id = std::get_if<pickle::PersistentId>(&value);
    if (id == nullptr) continue;
    const StorageReference reference = read_storage_reference(document, *id, path);
    const std::size_t size = size_of(reference.dtype);
    if (sizes.emplace(reference.key, size).first->second != size) {
      throw Error(fmt::format("{}: storage {} is used with elements of two sizes", path, quote(reference.key)));
    }
  }
  return sizes;
}

// Five pickles (magic number, protocol version, system information, the object, the list of storage keys), then for
// each key the number of elements and the elements.
Archive open_legacy(const InputFile& file) {
  ByteReader reader(file, {0, file.size()}, file.path());
  check_legacy_header(reader, file);
  Archive archive;
  archive.document = take_pickle(reader, file, "object");
  const auto sizes = element_sizes(archive.document, file.path());
  const Document keys = take_pickle(reader, file, "storage keys");
  const auto* list = std::get_if<pickle::List>(&keys.at(keys.top));
  if (list == nullptr) reader.fail("its storage keys are not a list; the file is corrupt");
  for (const pickle::Id id : list->items) {
    const auto* key = std::get_if<pickle::Text>(&keys.at(id));
    if (key == nullptr) reader.fail("a storage key is not a string; the file is corrupt");
    const auto found = sizes.find(key->text);
    if (found == sizes.end()) reader.fail(fmt::format("storage {} belongs to no tensor", quote(key->text)));
    const auto elements = reader.read<std::uint64_t>();
    const auto size = checked_product(stated_size(elements), found->second);
    if (!size) reader.fail(fmt::format("storage {} cannot have {} elements", quote(key->text), elements));
    const FilePart place{reader.position(), *size};
    reader.skip(*size);
    if (!archive.storages.emplace(found->first, place).second) {
      reader.fail(fmt::format("storage {} is repeated", quote(key->text)));
    }
  }
  if (reader.remaining() != 0) reader.fail(fmt::format("{} bytes follow the last storage", reader.remaining()));
  return archive;
}

// Returns the dict under one of the keys that training scripts use for the weights, or null if there is none.
const Dict* wrapped_state(const Document& document, const Dict& dict, const std::string& path) {
  constexpr std::array<std::string_view, 4> wrappers = {"model", "state_dict", "model_state_dict", "module"};
  const Dict* state = nullptr;
  for (const auto& [key, value] : dict.entries) {
    const auto* name = std::get_if<pickle::Text>(&document.at(key));
    if (name == nullptr || std::find(wrappers.begin(), wrappers.end(), name->text) == wrappers.end()) continue;
    const auto* inner = std::get_if<Dict>(&document.at(value));
    if (inner == nullptr) continue;
    if (state != nullptr) throw Error(fmt::format("{}: has two state dicts, expected one; save one of them", path));
    state = inner;
  }
  return state;
}

const Dict& find_state_dict(const Document& document, const std::string& path) {
  const Value& top = document.at(document.top);
  const auto* dict = std::get_if<Dict>(&top);
  if (dict == nullptr) {
    throw Error(fmt::format("{}: is a value of type {}, expected a state dict; torch.save(model.state_dict(), ...)",
                            path, pickle::type_name(top)));
  }
  const Dict* wrapped = wrapped_state(document, *dict, path);
  return wrapped != nullptr ? *wrapped : *dict;
}

}  // namespace

bool looks_like_pth(std::span<const std::byte> bytes) {
  return looks_like_zip(bytes) || looks_like_legacy(bytes);
}

StoredTensors read_pth(std::shared_ptr<const InputFile> file) {
  const std::string& path = file->path();
  if (!looks_like_pth(file->start()))
    throw Error(fmt::format("{}: was not written by torch.save{}", path, shown_text(file->start())));
  const Archive archive = looks_like_zip(file->start()) ? open_zip(*file) : open_legacy(*file);
  const Dict& state = find_state_dict(archive.document, path);
  TorchTensorReader reader(archive.document, archive.storages, file);
  StoredTensors tensors;
  for (const auto& [key, id] : state.entries) {
    const auto* name = std::get_if<pickle::Text>(&archive.document.at(key));
    const Value& value = archive.document.at(id);
    if (name == nullptr) {
      throw Error(fmt::format("{}: the state dict has a key of type {}, expected names of tensors", path,
                              pickle::type_name(archive.document.at(key))));
    }
    if (!is_tensor_name(name->text)) {
      throw Error(fmt::format("{}: {} is not a name for a tensor; the file is corrupt", path, quote(name->text)));
    }
    if (!is_torch_tensor(value)) {
      throw Error(fmt::format("{}: entry {} is of type {}, expected a tensor; torch.save(model.state_dict(), ...)",
                              path, quote(name->text), pickle::type_name(value)));
    }
    if (tensors.size() == largest_tensor_count) {
      throw Error(fmt::format("{}: has more than {} tensors", path, largest_tensor_count));
    }
    if (!tensors.emplace(name->text, reader.read(value, name->text)).second) {
      throw Error(fmt::format("{}: tensor {} is repeated", path, quote(name->text)));
    }
  }
  if (tensors.empty()) throw Error(fmt::format("{}: the state dict is empty", path));
  return tensors;
}

}  // namespace minimind
