#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weights/io/output_file.h"
#include "weights/io/unfinished.h"

namespace minimind {

// A folder whose files appear together: each is written under a temporary name and renamed when all are complete. If
// that fails, a newly created folder is removed.
class OutputFolder {
 public:
  // Removes what killed processes left of these files. Throws Error if the folder exists and is not empty, unless
  // `replace`. With `replace`, throws Error if it has other
  // files of a model, which would be read along with the new ones.
  OutputFolder(std::string path, const std::vector<std::string>& names, bool replace);
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;
  ~OutputFolder();

  // Opens one of the files named in the constructor for writing.
  OutputFile& add(const std::string& name, OutputFile::Watch watch = {});
  void add_text(const std::string& name, const std::string& text);

  void commit();

 private:
  std::string path_;
  bool made_ = false;
  std::optional<Unfinished> unfinished_;  // path_, if made
  bool committed_ = false;
  std::vector<std::unique_ptr<OutputFile>> files_;
};

}  // namespace minimind
