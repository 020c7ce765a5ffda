#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/little_endian.h"
#include "tests/support/pickle_writer.h"
#include "tests/support/zip_writer.h"

namespace minimind {

// Storages of an archive: key and bytes.
using Storages = std::vector<std::pair<std::string, std::string>>;

// The bytes of torch.save(_use_new_zipfile_serialization=True) for an object with this pickle body.
inline std::string torch_zip(const std::string& pickle_body, const Storages& storages,
                             const std::string& byte_order = "little") {
  ZipWriter writer;
  writer.add("model/data.pkl", pickle_writer::document(pickle_body));
  writer.add("model/byteorder", byte_order);
  for (const auto& [key, bytes] : storages) writer.add("model/data/" + key, bytes);
  writer.add("model/version", "3\n");
  return writer.finish();
}

struct LegacyOptions {
  std::int64_t protocol_version = 1001;
  std::string little_endian = "\x88";  // the pickle of True
  std::uint64_t element_size = 4;
};

// The bytes of torch.save(_use_new_zipfile_serialization=False) for that object; all storages have elements of one
// size.
inline std::string torch_legacy(const std::string& pickle_body, const Storages& storages,
                                const LegacyOptions& options = {}) {
  using pickle_writer::document;
  std::string bytes = document("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19");
  bytes += document(pickle_writer::integer(options.protocol_version));
  bytes += document(
      pickle_writer::dict({pickle_writer::text("protocol_version"), pickle_writer::integer(options.protocol_version),
                           pickle_writer::text("little_endian"), options.little_endian}));
  bytes += document(pickle_body);
  std::string keys = "](";
  for (const auto& [key, data] : storages) keys += pickle_writer::text(key);
  bytes += document(keys + "e");
  for (const auto& [key, data] : storages) bytes += little_endian(data.size() / options.element_size) + data;
  return bytes;
}

}  // namespace minimind
