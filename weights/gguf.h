#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "weights/mapped_file.h"
#include "weights/output_file.h"
#include "weights/output_tensor.h"
#include "weights/tensor_file.h"

namespace minimind {

// GGUF, as https://github.com/ggml-org/ggml/blob/master/docs/gguf.md describes it: typed metadata, then tensors.

// The type codes of the format.
enum class GgufType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

// "u32", "string", ...
std::string_view name_of(GgufType type);

// One value of the metadata. Numbers are widened; `type` says what is, or will be, in the file. An array has the type
// of its elements in `type` and holds them in one of the vectors; arrays of arrays are not read.
struct GgufValue {
  using Data =
      std::variant<std::uint64_t, std::int64_t, double, bool, std::string, std::vector<std::uint64_t>,
                   std::vector<std::int64_t>, std::vector<double>, std::vector<bool>, std::vector<std::string>>;
  GgufType type = GgufType::u32;  // of the value, or of each element
  Data data;

  bool is_array() const { return data.index() >= 5; }
};

// Keys in the order of the file; no key is there twice.
class GgufMetadata {
 public:
  // Nothing when the key is absent.
  const GgufValue* find(std::string_view key) const;
  bool contains(std::string_view key) const { return find(key) != nullptr; }
  // Replaces the value of a key that is there already.
  void set(std::string key, GgufValue value);
  const std::vector<std::pair<std::string, GgufValue>>& entries() const { return entries_; }

  // For writing, in the types that llama.cpp expects.
  void set_u32(std::string key, std::uint32_t value);
  void set_f32(std::string key, float value);
  void set_bool(std::string key, bool value);
  void set_string(std::string key, std::string value);
  void set_strings(std::string key, std::vector<std::string> values);
  void set_i32s(std::string key, const std::vector<std::int32_t>& values);

 private:
  std::vector<std::pair<std::string, GgufValue>> entries_;
};

struct GgufFile {
  std::uint32_t version = 3;
  GgufMetadata metadata;
  StoredTensors tensors;  // under the names of the file, shapes outermost first as everywhere here
};

// Whether the file begins with GGUF's magic.
bool looks_like_gguf(std::span<const std::byte> bytes);

// Reads versions 2 and 3, little-endian. Tensors stay in the mapped file. Throws Error, naming the file and the key or
// tensor, for anything damaged or out of bounds, and by name for big-endian files, other versions, tensor types that
// are not in DType and parts of a split file. As in ggml, every byte of the data must belong to exactly one tensor or
// to its padding. Limits of ours: 64 MB of metadata and names, 4096 keys, 65536 tensors. There may be no tensors at
// all: llama.cpp ships vocabularies so.
GgufFile read_gguf(std::shared_ptr<const MappedFile> file);

// Writes version 3 to an empty file: everything of `metadata`, then the tensors in order, encoded on `threads` threads.
// Throws Error, before anything is written, for tensors that GGUF or llama.cpp cannot have (u8 and bool, more than 4
// dimensions, a size of 0, names over 63 bytes) and where general.alignment is set: it is 32, which needs no key.
void write_gguf(OutputFile& out, const GgufMetadata& metadata, const std::vector<OutputTensor>& tensors,
                std::size_t threads);

}  // namespace minimind
