#pragma once

#include <string>

#include "tools/options/command_options.h"
#include "tools/options/generation_options.h"

namespace minimind {

// The page in one file with a model of the user's inside, instead of a server.
struct PageExport {
  std::string out;                     // empty: there is to be a server
  std::string page = "minimind.html";  // the page with any model
  bool force = false;

  // Adds --export-page, --page and --force. The command must have all its other options.
  void add_to(CommandOptions& command);

  // Writes a copy of the page in which the model is the checkpoint, as a GGUF with its tokenizer and chat template, in
  // the type of the options. Throws Error if the page is not one of this version, if there is no tokenizer, if the
  // model is too large for a browser, and if `out` exists, unless `force`.
  void write(const GenerationArguments& arguments, const std::string& chat_template) const;
};

}  // namespace minimind
