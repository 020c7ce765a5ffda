#pragma once

#include <string>
#include <vector>

#include "runtime/chat/chat_json.h"
#include "runtime/generate/sampling_options.h"

namespace minimind {

// The fields of a request's body, read one by one. A field that is null counts as missing. Every function that finds a
// value of another type or out of range throws RequestError, naming the field, what was found and what was expected.
class BodyFields : public ChatFields {
 public:
  // `where` is the name of the object in the body, such as "stream_options". `object` must outlive this.
  explicit BodyFields(const ChatJson& object, std::string where = "");

  // All sampling_parameters that there are, by their names or aliases, whose values must be equal if there are both.
  // top_k -1 is off, as in vLLM.
  void read_sampling(SamplingOptions& sampling) const;
  // A string or a list of them, at most 64, none of them empty or over 1000 bytes: each token of a text is compared
  // with all of them.
  std::vector<std::string> short_texts(const std::string& name) const;
  // An object, whose fields the caller reads.
  const ChatJson* object(const std::string& name) const;

  // Rejects every value but this one, because others would ask for what is not supported.
  void require(const std::string& name, const ChatJson& only) const;

  // Throws RequestError if the object has fields that none of the calls so far has named and that are not null.
  void reject_the_rest() const;

 protected:
  void throw_own(const std::string& message, const std::string& field) const override;

 private:
  void read(const SamplingParameter& parameter, const std::string& name, SamplingOptions& sampling) const;
};

}  // namespace minimind
