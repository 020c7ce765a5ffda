#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weights/io/output_file.h"

namespace minimind {

// A folder whose files appear together: each is written under a temporary name in it, and they get their names when all
// are whole. A folder that had to be made is removed again when that does not happen.
class OutputFolder {
 public:
  // Throws Error when the folder is there and not empty, unless `replace`; then, when it holds other files of a model,
  // which would be read along with the new ones.
  OutputFolder(std::string path, const std::vector<std::string>& names, bool replace);
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;
  ~OutputFolder();

  // One of the names given above, to be written to.
  OutputFile& add(const std::string& name, OutputFile::Watch watch = {});
  void add_text(const std::string& name, const std::string& text);

  void commit();

 private:
  std::string path_;
  bool made_ = false;
  bool committed_ = false;
  std::vector<std::unique_ptr<OutputFile>> files_;
};

}  // namespace minimind
