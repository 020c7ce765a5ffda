#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace minimind {

// The members of a zip archive by name, each as its bytes inside the archive. Names and bytes point into `archive`.
using ZipMembers = std::map<std::string_view, std::span<const std::byte>>;

// Reads the central directory (PKWARE APPNOTE 6.3, zip64 included) of an archive whose members are stored, not
// compressed: the only kind torch.save writes. libzip is not used because it hands out copies only and never says
// where a stored member lies; here the tensors are used in place, from the mapped file.
//
// Throws Error, beginning with `path`, for an archive that is cut off, spans disks, has encrypted or compressed
// members, two members of one name, or a record that points outside the archive or disagrees with another.
// CRC-32s are not verified: PyTorch does not either, can be told not to write them, and it would read every page.
ZipMembers read_zip_directory(std::span<const std::byte> archive, const std::string& path);

}  // namespace minimind
