#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "runtime/chat/session_file.h"
#include "tests/support/read_bytes.h"
#include "weights/checkpoint/checkpoint.h"
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
