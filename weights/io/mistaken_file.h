#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "weights/io/input_file.h"

namespace minimind {

// Throws Error with advice if `path` does not exist. Recognises a ~ that the shell did not replace, a model on Hugging
// Face or ModelScope, a web address and others. Throws Error, too, if the name is that of an unfinished download.
void check_path(const std::string& path);

// Opens a file that the user named. Throws Error as InputFile::open and check_not_mistaken do, with advice on a ~.
std::shared_ptr<const InputFile> open_input(const std::string& path);

// Returns advice, as the end of a message, for a path with a ~ that the shell did not replace; empty for other paths.
std::string advice_on_home(const std::string& path);

// Throws Error if the content is that of a mistaken download: a Git LFS pointer, a web page, or an archive. A zip
// archive is accepted, because torch.save writes one.
void check_not_mistaken(std::string_view content, const std::string& path);

// Returns how a file that is not a model starts, as the end of a message: " and starts with '...'". Empty if the file
// is not text.
std::string shown_text(std::span<const std::byte> start);

}  // namespace minimind
