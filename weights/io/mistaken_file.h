#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "weights/io/input_file.h"

namespace minimind {

// Opens a file that the user named. Throws Error as InputFile::open and check_not_mistaken do.
std::shared_ptr<const InputFile> open_input(const std::string& path);

// Throws Error if the content, of which `start` is the beginning, is that of a mistaken download: a Git LFS pointer, a
// web page, or an archive. A zip archive is accepted, because torch.save writes one.
void check_not_mistaken(std::string_view start, std::size_t size, const std::string& path);

// Returns how a file that is not a model starts, as the end of a message: " and starts with '...'". Empty if the file
// is not text.
std::string shown_text(std::span<const std::byte> start);

}  // namespace minimind
