#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/options/options.h"
#include "weights/checkpoint/checkpoint.h"
#include "weights/io/output_file.h"
#include "weights/io/part_files.h"

namespace minimind {

// Returns every file that a command reads or may read for a model: weights and the files next to them, LoRAs, config
// and tokenizer.
std::vector<std::string> files_read(const std::string& model, const CheckpointOptions& options,
                                    const Checkpoint& checkpoint, const std::optional<std::string>& tokenizer);

// Throws UsageError if the output file is one of them, under any name.
void check_not_read(const std::string& written, const std::vector<std::string>& read);

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
