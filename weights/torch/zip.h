#pragma once

#include <functional>
#include <map>
#include <string>

#include "weights/io/input_file.h"

namespace minimind {

// The members of a zip archive: where the bytes of each are in the archive, by its name.
using ZipMembers = std::map<std::string, FilePart, std::less<>>;

// Reads the central directory (PKWARE APPNOTE 6.3, zip64 included) of an archive. Its members must be stored, not
// compressed: torch.save writes no others. libzip is not used because it does not report the offset of a stored member,
// from which tensors are read here. Our own limits: a directory of 32 MiB, and 262144 members.
//
// Throws Error, starting with its path, for an archive that is truncated, spans disks, has encrypted or compressed
// members, or repeats a member's name. A record that points outside the archive or disagrees with another also throws
// Error. CRC-32s are not verified, as in PyTorch: they are optional in torch.save, and verifying would read every page.
ZipMembers read_zip_directory(const InputFile& archive);

}  // namespace minimind
