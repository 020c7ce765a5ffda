#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "runtime/chat/chat_json.h"
#include "weights/base/error.h"

namespace minimind {

// What is wrong with one request. The other requests go on.
class RequestError : public Error {
 public:
  // `param` is the field of the body, empty if it is not one field. `code` is as OpenAI's API has it.
  RequestError(const std::string& message, std::string param, std::string code = "invalid_value")
      : Error(message), param_(std::move(param)), code_(std::move(code)) {}

  const std::string& param() const { return param_; }
  const std::string& code() const { return code_; }

  // The HTTP status of the code.
  int status() const;

 private:
  std::string param_, code_;
};

// Returns what work() returns. An Error that it throws becomes a RequestError about the field `param`.
template <class Work>
auto about(const std::string& param, Work&& work) {
  try {
    return work();
  } catch (const RequestError&) {
    throw;
  } catch (const Error& error) {
    throw RequestError(error.what(), param);
  }
}

// The body of an answer that is an error: {"error": {"message", "type", "param", "code"}}.
ChatJson error_json(const RequestError& error);

// The same on one line.
std::string error_body(const RequestError& error);

// What has more bytes to read is no brief work.
inline constexpr std::size_t most_brief_bytes = std::size_t{32} << 10;

// Thrown on a thread with BriefWork by a request that takes long: it is to be done again on another thread.
struct LongWork {};

// While this lives, its thread is for brief work: others wait for it.
class BriefWork {
 public:
  BriefWork();
  BriefWork(const BriefWork&) = delete;
  BriefWork& operator=(const BriefWork&) = delete;
  ~BriefWork();

  // Returns true if this thread is for brief work.
  static bool expected();

 private:
  const bool before_;
};

// Throws LongWork if this thread is for brief work.
void begin_long_work();

}  // namespace minimind
