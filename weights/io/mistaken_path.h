#pragma once

#include <string>

namespace minimind {

// Throws Error with advice if `path` does not exist. Recognises a ~ that the shell did not replace, a model on Hugging
// Face or ModelScope, a web address and others. Throws Error, too, if the name is that of an unfinished download.
void check_path(const std::string& path);

}  // namespace minimind
