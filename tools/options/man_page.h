#pragma once

#include <string>

namespace CLI {
class App;
}  // namespace CLI

namespace minimind {

// Returns the man page of a command, or of the program if `command` is it, in the current language: text for man(7).
std::string man_page_of(const CLI::App& command);

}  // namespace minimind
