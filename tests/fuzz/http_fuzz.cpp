#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "tools/http/access.h"
#include "tools/http/reader.h"
#include "tools/http/settings.h"
#include "tools/http/target.h"

namespace {

using namespace minimind;

struct Outcome {
  HttpReader::State state;
  std::string path, query, body;
  std::size_t consumed = 0;

  bool operator==(const Outcome&) const = default;
};

Outcome read(std::string_view bytes, std::size_t step) {
  static const HttpSettings settings;
  static const HttpAccess access(settings);
  HttpReader reader({.head = 2000, .fields = 20, .body = 2000});
  std::size_t consumed = 0, arrived = 0;
  const auto is_open = [&] {
    return reader.state() != HttpReader::State::done && reader.state() != HttpReader::State::failed;
  };
  while (is_open() && arrived < bytes.size()) {
    arrived += std::min(step, bytes.size() - arrived);
    consumed += reader.read(bytes.substr(consumed, arrived - consumed));
    if (reader.state() != HttpReader::State::ready) continue;
    if (!access.reject({reader.request(), reader.authority(), reader.is_http_1_1(), true})) {
      HttpHeaders headers = access.cors_headers(reader.request());
      if (HttpAccess::is_preflight(reader.request())) access.answer_preflight(reader.request(), headers);
    }
    consumed += reader.read(bytes.substr(consumed, arrived - consumed));
  }
  // The status may differ, because the limits apply to what has arrived.
  if (reader.state() == HttpReader::State::failed) return {reader.state(), {}, {}, {}, 0};
  const HttpRequest& request = reader.request();
  return {reader.state(), request.path, request.query, request.body, consumed};
}

}  // namespace

// Reads the input as a request, in pieces whose size the first byte gives and at once, which must not differ; then as
// the value of fields.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (read(bytes, 1 + data[0] % 32) != read(bytes, size)) std::abort();
  host_name(bytes);
  is_local_host(bytes);
  is_origin(bytes);
  try {
    parse_http_target("GET", bytes);
  } catch (const HttpFailure&) {
  }
  return 0;
}
