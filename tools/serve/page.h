#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tools/http/http.h"

namespace minimind {

// A file of the chat page. The binary contains its bytes: nothing is read from disk.
struct PageFile {
  std::string path;  // "/" or "/page.css"
  std::string_view content_type;
  std::string_view bytes;
  std::string etag;  // of the bytes, with its quotes
};

// Returns all files of the page.
std::span<const PageFile> page_files();

// Returns the file with this path, or nullptr.
const PageFile* find_page_file(std::string_view path);

// The Content-Security-Policy of every file: nothing inline, nothing from another host.
std::string_view content_security_policy();

// Answers a GET of one of the page's files, with status 304 if the client has its bytes. Returns false, without an
// answer, for any other request.
bool answer_page(const HttpRequest& request, HttpAnswer& answer);

}  // namespace minimind
