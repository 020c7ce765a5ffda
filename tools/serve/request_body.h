#pragma once

#include <cstddef>

#include "runtime/chat/chat_json.h"
#include "tools/http/http.h"

namespace minimind {

// Returns true if the request has no body, or one that its content type says is JSON. A page of another origin cannot
// send this type without asking first.
bool has_json_type(const HttpRequest& request);

// Returns true if a browser sent the request for a page: only then can it be one that its user does not know of.
bool is_from_page(const HttpRequest& request);

// Reads the body of a request. Rejects one with over `most_text` bytes of text before it is parsed: what is done with
// text, such as encoding it or filling in a template, takes much longer than reading it, and others wait meanwhile.
// Numbers are no text. Throws RequestError, also for a body that is compressed or not a JSON object.
ChatJson read_request_body(const HttpRequest& request, std::size_t most_text);

}  // namespace minimind
