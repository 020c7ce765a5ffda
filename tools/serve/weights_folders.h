#pragma once

#include <optional>
#include <string>
#include <vector>

namespace minimind {

// The folders below which clients may name checkpoints. A client learns nothing about files elsewhere, not even whether
// they exist.
class WeightsFolders {
 public:
  // Folders that do not exist have nothing below them.
  explicit WeightsFolders(const std::vector<std::string>& folders);

  // Returns the path without links. std::nullopt if it leads elsewhere or nowhere, or if a file that belongs to the
  // checkpoint does. Between this check and the opening of the files others may replace them: only the sandbox holds
  // then, see sandbox.h.
  std::optional<std::string> resolve(const std::string& path) const;

 private:
  bool leads_inside(const std::string& path) const;

  std::vector<std::string> folders_;  // without links, with a slash at the end
};

}  // namespace minimind
