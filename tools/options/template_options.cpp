#include "tools/options/template_options.h"

#include "tools/terminal/note.h"

namespace minimind {

void add_template(CLI::App& command, std::string& path) {
  command.add_option("--template", path, "Jinja file with the chat template (default: the checkpoint's)");
}

void add_plain_content(CLI::App& command, bool& plain_content) {
  command.add_flag("--plain-content", plain_content,
                   "messages and tools are ordinary text, also where they spell control tokens");
}

void print_template_note(const std::string& source, Family family) {
  if (source.empty()) return note("chat template of family {}: the checkpoint has none", name_of(family));
  note("chat template from {}", source);
}

}  // namespace minimind
