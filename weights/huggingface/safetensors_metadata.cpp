#include "weights/huggingface/safetensors_metadata.h"

#include <cstdint>
#include <nlohmann/json.hpp>

#include "weights/io/byte_reader.h"
#include "weights/io/json_fields.h"

namespace minimind {

std::map<std::string, std::string> read_safetensors_metadata(const InputFile& file) {
  constexpr int deepest_nesting = 3;
  ByteReader reader(file, {0, file.size()}, file.path() + ": safetensors header");
  const std::string_view header = reader.take_text(reader.read<std::uint64_t>());
  std::map<std::string, std::string> metadata;
  read_json_members(header, file.path() + ": the safetensors header", deepest_nesting,
                    [&](const std::string& name, const nlohmann::json& value) {
                      if (name == "__metadata__") metadata = value.get<std::map<std::string, std::string>>();
                    });
  return metadata;
}

}  // namespace minimind
