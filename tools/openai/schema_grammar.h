#pragma once

#include <functional>
#include <memory>
#include <string>

#include "runtime/chat/chat_json.h"
#include "runtime/grammar/grammar.h"

namespace minimind {

// Returns the grammar of JSON with only the properties that the schema names, in their order, as OpenAI's structured
// outputs have it; or, `open`, with others and in any order. Requests with the same schema share it. Throws Error,
// whose message starts with `source`, Cancelled, and LongWork where there are BriefSchemas.
std::shared_ptr<const Grammar> schema_grammar(const ChatJson& schema, const std::string& source, bool open = false);

// Work of a request that takes long, for another thread. Then the request is read again: schema_grammar() returns at
// once.
struct LongWork {
  std::function<void()> work;
  bool is_all = false;  // it also answers the request, which is not read again
};

// While this lives, schema_grammar() on this thread throws LongWork in place of working for more than some
// milliseconds.
class BriefSchemas {
 public:
  BriefSchemas();
  BriefSchemas(const BriefSchemas&) = delete;
  BriefSchemas& operator=(const BriefSchemas&) = delete;
  ~BriefSchemas();

 private:
  const bool before_;
};

}  // namespace minimind
