#include <array>
#include <cassert>

#include "weights/gguf/format.h"
#include "weights/gguf/header.h"
#include "weights/gguf/reader.h"

namespace minimind {
namespace {

void write_padding(OutputFile& out) {
  constexpr std::array<std::byte, gguf_default_alignment> zeros{};
  const std::size_t size = static_cast<std::size_t>(out.size());
  out.write(std::span(zeros).first(gguf_padded(size, gguf_default_alignment) - size));
}

}  // namespace

void write_gguf(OutputFile& out, const GgufMetadata& metadata, const std::vector<OutputTensor>& tensors,
                std::size_t threads) {
  const std::string header = gguf_header(metadata, tensors);
  out.write(std::as_bytes(std::span(header)));
  for (const OutputTensor& tensor : tensors) {
    const std::uint64_t end = out.size() + byte_count(tensor);
    encode(tensor, threads, [&](std::span<const std::byte> bytes) { out.write(bytes); });
    assert(out.size() == end);
    write_padding(out);
  }
}

}  // namespace minimind
