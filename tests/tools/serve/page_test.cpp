#include "tools/serve/page.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

namespace minimind {
namespace {

const std::filesystem::path folder = std::filesystem::path(MINIMIND_SOURCE_DIR) / "tools/serve/page";

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string name_of(const PageFile& file) {
  return file.path == "/" ? "index.html" : file.path.substr(1);
}

// Keeps what is sent.
class KeptAnswer : public HttpAnswer {
 public:
  void send(int code, std::string_view content_type, std::string body, const HttpHeaders& extra) override {
    status = code;
    type = content_type;
    text = std::move(body);
    headers = {extra.begin(), extra.end()};
  }
  void start(std::string_view) override { FAIL(); }
  void write(std::string) override { FAIL(); }
  void finish() override { FAIL(); }
  const std::atomic<bool>& gone() const override { return never_; }
  const std::atomic<bool>& behind() const override { return never_; }

  int status = 0;
  std::string type, text;
  std::map<std::string, std::string> headers;

 private:
  const std::atomic<bool> never_ = false;
};

// Answers a request, which answer_page leaves alone unless it is `answered`.
void send(KeptAnswer& answer, const std::string& method, const std::string& path, bool answered = true,
          const std::map<std::string, std::string>& headers = {}) {
  const HttpRequest request{.method = method, .path = path, .query = "", .headers = headers, .body = ""};
  EXPECT_EQ(answer_page(request, answer), answered) << method << ' ' << path;
}

TEST(Page, HasTheBytesOfEveryFileInItsFolder) {
  std::set<std::string> in_folder, in_binary;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) in_folder.insert(entry.path().filename());
  in_folder.erase("content_security_policy.txt");
  for (const PageFile& file : page_files()) {
    in_binary.insert(name_of(file));
    EXPECT_EQ(file.bytes, read_file(folder / name_of(file))) << file.path;
    EXPECT_EQ(find_page_file(file.path), &file);
  }
  EXPECT_EQ(in_binary, in_folder);
  EXPECT_EQ(find_page_file("/content_security_policy.txt"), nullptr);
  EXPECT_EQ(find_page_file(""), nullptr);
}

TEST(Page, PolicyAllowsNothingInlineAndNoOtherHost) {
  const std::string policy(content_security_policy());
  EXPECT_TRUE(policy.starts_with("default-src 'none';")) << policy;
  EXPECT_NE(policy.find("require-trusted-types-for 'script'"), std::string::npos);
  for (const char* const lax : {"unsafe-", "*", "http:", "https:", "data:", "blob:", "\n"}) {
    EXPECT_EQ(policy.find(lax), std::string::npos) << lax;
  }
}

TEST(Page, NamesNoOtherHostAndHasNothingInline) {
  const auto index = std::string(find_page_file("/")->bytes);
  for (const char* const forbidden : {"http:", "https:", "style=", " onclick=", "<style", "<script>"}) {
    EXPECT_EQ(index.find(forbidden), std::string::npos) << forbidden;
  }
  for (const PageFile& file : page_files()) {
    for (const char* const unsafe : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("}) {
      EXPECT_EQ(file.bytes.find(unsafe), std::string_view::npos) << file.path << " has " << unsafe;
    }
  }
}

TEST(Page, AnswersWithPolicyAndTag) {
  KeptAnswer answer;
  send(answer, "GET", "/");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.type, "text/html; charset=utf-8");
  EXPECT_EQ(answer.text, read_file(folder / "index.html"));
  EXPECT_EQ(answer.headers.at("Content-Security-Policy"), content_security_policy());
  EXPECT_EQ(answer.headers.at("ETag"), find_page_file("/")->etag);
}

TEST(Page, AnswersNotModifiedToItsTag) {
  const std::string etag = find_page_file("/page.js")->etag;
  for (const std::string& tags : {etag, "W/" + etag, "\"other\", " + etag, std::string("*")}) {
    KeptAnswer answer;
    send(answer, "GET", "/page.js", true, {{"if-none-match", tags}});
    EXPECT_EQ(answer.status, 304) << tags;
    EXPECT_EQ(answer.text, "");
  }
  KeptAnswer changed;
  send(changed, "GET", "/page.js", true, {{"if-none-match", "\"other\""}});
  EXPECT_EQ(changed.status, 200);
}

TEST(Page, LeavesOtherRequestsUnanswered) {
  KeptAnswer answer;
  send(answer, "POST", "/", false);
  send(answer, "GET", "/v1/models", false);
  send(answer, "GET", "/../page.js", false);
  EXPECT_EQ(answer.status, 0);
}

}  // namespace
}  // namespace minimind
