#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/little_endian.h"

// The bytes of GGUF files, well-formed or not.
namespace minimind {

inline std::string gguf_text(const std::string& text) {
  return little_endian(std::uint64_t{text.size()}) + text;
}

struct GgufBytes {
  struct Tensor {
    std::string name = "w";
    std::vector<std::uint64_t> sizes = {4};  // as in the file: the size of a row first
    std::uint32_t type = 0;                  // F32
    std::string data = std::string(16, 'x');
    std::optional<std::uint64_t> offset = {};  // if not the expected one
    std::optional<std::uint32_t> dimensions = {};
  };

  std::string magic = "GGUF";
  std::uint32_t version = 3;
  std::size_t alignment = 32;
  std::vector<std::string> metadata;  // keys, types and values
  std::vector<Tensor> tensors;
  std::optional<std::uint64_t> key_count = {};
  std::optional<std::uint64_t> tensor_count = {};

  GgufBytes& key(const std::string& name, std::uint32_t type, const std::string& value) {
    metadata.push_back(gguf_text(name) + little_endian(type) + value);
    return *this;
  }
  GgufBytes& array(const std::string& name, std::uint32_t type, std::uint64_t count, const std::string& elements) {
    return key(name, 9, little_endian(type) + little_endian(count) + elements);
  }
  GgufBytes& tensor(Tensor described) {
    tensors.push_back(std::move(described));
    return *this;
  }

  std::string padding(std::size_t size) const { return std::string((alignment - size % alignment) % alignment, '\0'); }

  std::string header() const {
    std::string bytes = magic + little_endian(version) +
                        little_endian(tensor_count.value_or(std::uint64_t{tensors.size()})) +
                        little_endian(key_count.value_or(std::uint64_t{metadata.size()}));
    for (const std::string& entry : metadata) bytes += entry;
    std::uint64_t offset = 0;
    for (const Tensor& described : tensors) {
      bytes += gguf_text(described.name) +
               little_endian(described.dimensions.value_or(static_cast<std::uint32_t>(described.sizes.size())));
      for (const std::uint64_t size : described.sizes) bytes += little_endian(size);
      bytes += little_endian(described.type) + little_endian(described.offset.value_or(offset));
      offset += described.data.size() + padding(described.data.size()).size();
    }
    return bytes;
  }

  std::string bytes() const {
    std::string file = header();
    file += padding(file.size());
    for (const Tensor& described : tensors) file += described.data + padding(described.data.size());
    return file;
  }
};

}  // namespace minimind
