#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/chat/session_file.h"
#include "tests/fuzz/mutate_json.h"
#include "tests/support/little_endian.h"
#include "tests/support/read_bytes.h"
#include "weights/checkpoint/open_checkpoint.h"
#include "weights/io/sha256.h"

// Reads the input as a session with a small model. The last 32 bytes of the input are replaced by the checksum of those
// before them: without that, no change of a byte would get past it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace minimind;
  static const ModelIdentity model = identify(open_checkpoint("tests/golden/v3-dense/model.pth", {}), std::nullopt);
  static Context context(model.config, 64);
  std::vector<std::uint8_t> file(data, data + size);
  if (size >= 32) {
    Sha256 hash;
    hash.update(std::as_bytes(std::span(file).first(size - 32)));
    const auto digest = hash.digest();
    std::memcpy(file.data() + size - 32, digest.data(), 32);
  }
  read_bytes_at_path(file.data(), size, [](const std::string& path) { load_session(path, model, context); });
  return 0;
}

// Changes the header as JSON, the tokens, or the keys and values, and writes the right sizes.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  using namespace minimind;
  static constexpr std::string_view words[] = {
      "messages", "role",  "user",      "assistant",  "tool",  "content",          "tools",
      "think",    "now",   "positions", "answers",    "model", "sha256",           "layers",
      "kv_heads", "f16",   "head_dim",  "cache_type", "q8_0",  "verbatim",         "name",
      "function", "calls", "arguments", "tool_calls", "id",    "reasoning_content"};
  return mutate_structure(
      data, size, max_size, seed, [](std::string_view file, Dice& dice) -> std::optional<std::string> {
        constexpr std::size_t before = 20, digest = 32, width = sizeof(std::uint64_t);
        std::uint64_t length = 0;
        if (file.size() < before + width + digest) return std::nullopt;
        std::memcpy(&length, file.data() + before, width);
        if (length > file.size() - before - width - digest) return std::nullopt;
        std::string header(file.substr(before + width, static_cast<std::size_t>(length)));
        std::string rest(file.substr(before + width + header.size()));
        if (dice.one_in(4)) {
          mutate_bytes(rest);
        } else {
          const auto changed = JsonMutator(dice, words).change(header);
          if (!changed) return std::nullopt;
          header = *changed;
        }
        return std::string(file.substr(0, before)) + little_endian(std::uint64_t{header.size()}) + header + rest;
      });
}
