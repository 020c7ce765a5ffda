#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "weights/io/mapped_file.h"

namespace minimind {

// Throws Error, which says what to do, if `path` names nothing (a ~ that the shell left in it, a model on Hugging
// Face or ModelScope, a web address and others), and when it is what a download is called until it is whole.
void check_path(const std::string& path);

// Opens the file that a user named. Throws Error as MappedFile::open and check_not_mistaken do, with advice on a ~.
std::shared_ptr<const MappedFile> open_input(const std::string& path);

// What to do about a path with a ~ that the shell has not replaced, as the end of a message; empty for other paths.
std::string advice_on_home(const std::string& path);

// Throws Error if the content is something that was saved instead of the file that was meant: a Git LFS pointer, a
// web page, or an archive other than zip, which torch.save writes.
void check_not_mistaken(std::string_view content, const std::string& path);
void check_not_mistaken(std::span<const std::byte> content, const std::string& path);

// How a file that is not a model starts, as the end of a message, when it is text: " and starts with '...'".
std::string shown_text(std::span<const std::byte> content);

}  // namespace minimind
