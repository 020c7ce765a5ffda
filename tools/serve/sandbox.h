#pragma once

#include <optional>
#include <string>
#include <vector>

namespace minimind {

// What the process keeps when it gives up its other rights.
struct Sandbox {
  std::vector<std::string> readable;        // files and folders; those that do not exist are ignored
  std::vector<std::string> socket_folders;  // where unix sockets are made and removed
};

// What is in force after enter_sandbox().
struct SandboxState {
  bool no_new_rights = false;  // programs that the process might run get no rights that it lacks
  bool confined = false;       // it reads only what is listed, writes no file and runs no program
  std::string reason{};        // why it is not confined
};

// Gives up the rights of this thread, and of all that it starts from now on, for ever: threads that run already keep
// theirs. Files that are open stay open. Uses Landlock, from Linux 5.13 on; connections to other machines can be
// forbidden from 6.7 on. Does what the system allows, and returns what that is.
SandboxState enter_sandbox(const Sandbox& sandbox);

// The folders below which clients may name checkpoints. A client learns nothing about files elsewhere, not even whether
// they exist.
class WeightsFolders {
 public:
  // Folders that do not exist have nothing below them.
  explicit WeightsFolders(const std::vector<std::string>& folders);

  // Returns the path without links. std::nullopt if it leads elsewhere or nowhere, or if a file that belongs to the
  // checkpoint does. Between this check and the opening of the files others may replace them: only the sandbox holds
  // then.
  std::optional<std::string> resolve(const std::string& path) const;

 private:
  bool leads_inside(const std::string& path) const;

  std::vector<std::string> folders_;  // without links, with a slash at the end
};

}  // namespace minimind
