#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/chat/chat_json.h"
#include "runtime/generate/sampling_options.h"

namespace minimind {

// The fields of a request's body, read one by one. A field that is null counts as missing. Every function that finds a
// value of another type or out of range throws RequestError, naming the field, what was found and what was expected.
class BodyFields {
 public:
  // `prefix` precedes the names in messages, such as "stream_options.". `object` must outlive this.
  explicit BodyFields(const ChatJson& object, std::string prefix = "");

  const ChatJson* find(const std::string& name);

  std::optional<double> number(const std::string& name, double least, double most);
  std::optional<std::uint64_t> whole(const std::string& name, std::uint64_t least, std::uint64_t most);
  // All sampling_parameters that there are, by their names or aliases, whose values must be equal if there are both.
  // top_k -1 is off, as in vLLM.
  void read_sampling(SamplingOptions& sampling);
  std::optional<bool> flag(const std::string& name);
  std::optional<std::string> text(const std::string& name);
  // A string or a list of them, at most 64, none of them empty or over 1000 bytes: each token of a text is compared
  // with all of them.
  std::vector<std::string> short_texts(const std::string& name);
  // An object, whose fields the caller reads.
  const ChatJson* object(const std::string& name);

  // Rejects every value but this one, because others would ask for what is not supported.
  void require(const std::string& name, const ChatJson& only);

  // Throws RequestError if the object has fields that none of the calls so far has named and that are not null.
  void reject_the_rest() const;

  [[noreturn]] void fail(const std::string& name, const std::string& expected) const;

 private:
  void read(const SamplingParameter& parameter, const std::string& name, SamplingOptions& sampling);

  const ChatJson& object_;
  std::string prefix_;
  std::set<std::string> known_;
};

}  // namespace minimind
