#include "tools/options/template_options.h"

#include "tools/options/help.h"
#include "tools/terminal/language.h"
#include "tools/terminal/note.h"

namespace minimind {

void add_template(CommandOptions& command, std::string& path) {
  command
      .add_option("--template", path,
                  bilingual("Jinja file with the chat template (default: the checkpoint's)",
                            "Jinja 对话模板文件（默认：检查点自带的模板）"))
      ->group(model_group)
      ->type_name("FILE");
}

void add_plain_content(CommandOptions& command, bool& plain_content) {
  command
      .add_flag("--plain-content", plain_content,
                bilingual("messages and tools are ordinary text, also where they spell control tokens",
                          "消息和工具一律作为普通文本，即使其中写有控制词元"))
      ->group(prompt_group);
}

void print_template_note(const std::string& source, Family family) {
  if (source.empty()) return note("chat template of family {}: the checkpoint has none", name_of(family));
  note("chat template from {}", source);
}

}  // namespace minimind
