#include "runtime/tokenizer/files.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "runtime/text/utf8.h"
#include "runtime/tokenizer/tokenizer_gguf.h"
#include "runtime/tokenizer/tokenizer_json.h"
#include "weights/base/error.h"
#include "weights/gguf/reader.h"
#include "weights/io/input_file.h"
#include "weights/io/json_fields.h"
#include "weights/io/mistaken_path.h"
#include "weights/io/path.h"

namespace minimind {
namespace {

using Json = nlohmann::json;

std::optional<std::string> find_template(const Json& list, std::string_view name) {
  for (const Json& entry : list) {
    if (!entry.is_object() || entry.value("name", Json()) != name) continue;
    const auto source = entry.find("template");
    if (source != entry.end() && source->is_string()) return source->get<std::string>();
  }
  return std::nullopt;
}

// One template, or a list of templates by name, of which transformers uses "tool_use" or "default".
void read_chat_template(const JsonFields& config, TokenizerData& data) {
  const Json& value = config.get("chat_template");
  if (!value.is_array()) {
    data.chat_template = config.text("chat_template");
    return;
  }
  data.chat_template = find_template(value, "default");
  data.tool_use_template = find_template(value, "tool_use");
  if (!data.chat_template) config.fail("chat_template", "a string, or an array with a template named \"default\"");
}

constexpr std::size_t largest_template = std::size_t{16} << 20;

std::string read_template_file(const std::string& path) {
  std::string text = open_input(path)->read_text(largest_template);
  if (!is_utf8(text)) throw Error(fmt::format("{}: is not UTF-8, expected a Jinja template", path));
  return text;
}

// Where the links of a folder in Hugging Face's cache, models--*/snapshots/*, lead to; "" for other folders. `folder`
// is a real path, and so is the result unless that is a link itself, to which nothing leads then.
std::string blobs_of(const std::string& folder) {
  const std::size_t at = folder.rfind("/snapshots/");
  return at == std::string::npos ? "" : join_path(folder.substr(0, at), "blobs");
}

bool is_in(const std::string& file, const std::string& folder) {
  return !folder.empty() && file.starts_with(join_path(folder, ""));
}

// Adds the chat templates next to the tokenizer.json. The files of newer versions of transformers take precedence over
// the config.
void read_chat_templates(TokenizerData& data) {
  if (const auto config = file_beside(data.source, "tokenizer_config.json")) {
    const Json json = read_json_object(*config);
    data.chat_template_source = *config + ": chat_template";
    read_chat_template(JsonFields(json, *config, ""), data);
  }
  const auto file = file_beside(data.source, "chat_template.jinja");
  if (!file) return;
  data.chat_template_source = *file;
  data.chat_template = read_template_file(*file);
  const auto tool_use = file_beside(data.source, "additional_chat_templates/tool_use.jinja");
  data.tool_use_template.reset();
  if (tool_use) data.tool_use_template = read_template_file(*tool_use);
}

TokenizerData read_json_and_templates(const std::string& path) {
  file_beside(path, "tokenizer_config.json");  // which read_tokenizer_json() reads
  TokenizerData data = read_tokenizer_json(path);
  read_chat_templates(data);
  return data;
}

}  // namespace

std::optional<std::string> file_beside(const std::string& path, std::string_view name) {
  const std::string folder = is_folder(path) ? path : parent_path(path);
  std::string file = join_path(folder, name);
  if (!is_there(file)) return std::nullopt;
  const std::string target = real_path(file), home = real_path(folder.empty() ? "." : folder);
  if (is_in(target, home) || is_in(target, blobs_of(home))) return file;
  throw Error(
      fmt::format("{}: is a link to {}, expected a file in its folder; put a copy of the file in place of the link, if "
                  "it is part of this model",
                  file, target));
}

TokenizerData read_tokenizer(const std::string& path) {
  check_path(path);
  if (is_folder(path)) return read_json_and_templates(path);
  const auto file = open_input(path);
  if (!looks_like_gguf(file->start())) return read_json_and_templates(path);
  return read_tokenizer_gguf(read_gguf(file).metadata, path);
}

Tokenizer load_tokenizer(const std::string& path) {
  return Tokenizer(read_tokenizer(path));
}

}  // namespace minimind
