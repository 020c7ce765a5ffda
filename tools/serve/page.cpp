#include "tools/serve/page.h"

#include <algorithm>
#include <vector>

#include "weights/io/sha256.h"

// In tools/embedded_files.S.
extern "C" {
#define PAGE_FILE(symbol, file, type) extern const char page_##symbol[], page_##symbol##_end[];
#include "tools/serve/page_list.h"
#undef PAGE_FILE
extern const char page_content_security_policy[], page_content_security_policy_end[];
}

namespace minimind {
namespace {

PageFile page_file(const std::string& name, std::string_view content_type, std::string_view bytes) {
  return {.path = name == "index.html" ? "/" : "/" + name,
          .content_type = content_type,
          .bytes = bytes,
          .etag = '"' + sha256_of(bytes).substr(0, 32) + '"'};
}

// Whether an If-None-Match, a list of tags, has this one. A weak tag counts as its strong one.
bool has_tag(std::string_view list, std::string_view etag) {
  return list == "*" || list.find(etag) != std::string_view::npos;
}

}  // namespace

std::span<const PageFile> page_files() {
  static const std::vector<PageFile> files = {
#define PAGE_FILE(symbol, file, type) page_file(file, type, {page_##symbol, page_##symbol##_end}),
#include "tools/serve/page_list.h"
#undef PAGE_FILE
  };
  return files;
}

const PageFile* find_page_file(std::string_view path) {
  const auto files = page_files();
  const auto found = std::ranges::find(files, path, &PageFile::path);
  return found == files.end() ? nullptr : &*found;
}

std::string_view content_security_policy() {
  const std::string_view text(page_content_security_policy, page_content_security_policy_end);
  return text.substr(0, text.find('\n'));
}

bool answer_page(const HttpRequest& request, HttpAnswer& answer) {
  const PageFile* const file = request.method == "GET" ? find_page_file(request.path) : nullptr;
  if (!file) return false;
  const HttpHeaders headers = {{"ETag", file->etag},
                               {"Cache-Control", "no-cache"},
                               {"Content-Security-Policy", std::string(content_security_policy())},
                               {"Cross-Origin-Opener-Policy", "same-origin"},
                               {"Cross-Origin-Resource-Policy", "same-origin"},
                               {"Referrer-Policy", "no-referrer"}};
  const std::string* const known = request.header("if-none-match");
  if (known && has_tag(*known, file->etag)) {
    answer.send(304, file->content_type, "", headers);
  } else {
    answer.send(200, file->content_type, std::string(file->bytes), headers);
  }
  return true;
}

}  // namespace minimind
