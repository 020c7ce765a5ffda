#pragma once

#include <string>

#include "tools/options/command_options.h"
#include "weights/model/config.h"

namespace minimind {

// Adds --template.
void add_template(CommandOptions& command, std::string& path);

// Adds --plain-content.
void add_plain_content(CommandOptions& command, bool& plain_content);

// Prints to stderr where a template is from, as FoundTemplate has it.
void print_template_note(const std::string& source, Family family);

}  // namespace minimind
