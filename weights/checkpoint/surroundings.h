#pragma once

#include <string>
#include <vector>

namespace minimind {

// The folder of a checkpoint, and the folders model/ of MiniMind's trees that it may be in, out/ or the tree's own
// folder; in search order.
struct Surroundings {
  std::string folder;
  std::vector<std::string> model_folders;
};

// Returns those of a checkpoint. If it is a link, its target's follow.
std::vector<Surroundings> surroundings(const std::string& checkpoint_path);

// Returns the path of a file without x/.., unless x is a link, so that x/.. is another folder.
std::string shorter(const std::string& path);

}  // namespace minimind
