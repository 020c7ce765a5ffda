#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace minimind {

// Paths are bytes, as the system takes them.

// From now on, a regular file of this name is in memory: these bytes, which must live as long as the program. One name
// at a time, given before there are threads.
void provide_file(const std::string& path, std::span<const std::byte> bytes);

// Returns the bytes of the file of that name in memory; none if there is no such file.
std::span<const std::byte> provided_file(const std::string& path);

// Returns true if a folder of that name exists.
bool is_folder(const std::string& path);

// Returns true if a file or folder of that name exists.
bool is_there(const std::string& path);

bool is_regular_file(const std::string& path);

// Returns true if both exist and are the same file or folder.
bool is_same_file(const std::string& a, const std::string& b);

// Returns "folder/name"; `name` alone in the current folder, "".
std::string join_path(std::string_view folder, std::string_view name);

// Returns the folder that a name is in: "a" for "a/b" and "a/", "/" for "/a", and "" for "a".
std::string parent_path(std::string_view path);

// Returns the suffix of the last name with its dot, such as ".pth"; "" for names such as "model" and ".hidden".
std::string_view path_extension(std::string_view path);

// Returns the path without links, "." and ".."; "" if there is no such file or folder.
std::string real_path(const std::string& path);

// Returns advice, as the end of a message, for a path with a ~ that the shell did not replace; empty for other paths.
std::string advice_on_home(const std::string& path);

}  // namespace minimind
