#include "tools/openai/request_error.h"

#include <map>
#include <nlohmann/json.hpp>

namespace minimind {
namespace {

std::string_view type_of(int status) {
  if (status >= 500) return "server_error";
  return status == 429 ? "rate_limit_error" : "invalid_request_error";
}

thread_local bool is_brief = false;

}  // namespace

int RequestError::status() const {
  static const std::map<std::string, int, std::less<>> statuses{
      {"model_not_found", 404},    {"not_found", 404},   {"permission_denied", 403},
      {"method_not_allowed", 405}, {"queue_full", 429},  {"unsupported_media_type", 415},
      {"server_error", 500},       {"unavailable", 503}, {"text_too_large", 413},
  };
  const auto known = statuses.find(code_);
  return known == statuses.end() ? 400 : known->second;
}

ChatJson error_json(const RequestError& error) {
  return {{"error",
           {{"message", error.what()},
            {"type", type_of(error.status())},
            {"param", error.param().empty() ? ChatJson(nullptr) : ChatJson(error.param())},
            {"code", error.code()}}}};
}

std::string error_body(const RequestError& error) {
  return json_line(error_json(error));
}

BriefWork::BriefWork() : before_(std::exchange(is_brief, true)) {}

BriefWork::~BriefWork() {
  is_brief = before_;
}

bool BriefWork::expected() {
  return is_brief;
}

void begin_long_work() {
  if (is_brief) throw LongWork();
}

}  // namespace minimind
