#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/fuzz/mutate.h"
#include "tests/fuzz/mutate_pickle.h"
#include "tests/support/read_bytes.h"
#include "tests/support/zip_writer.h"
#include "weights/torch/pth.h"
#include "weights/torch/zip.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  minimind::read_bytes(data, size, minimind::read_pth);
  return 0;
}

namespace {

using namespace minimind;

using Members = std::vector<std::pair<std::string, std::string>>;  // name and content

std::optional<Members> members_of(std::string_view archive) {
  std::optional<Members> members;
  read_bytes(reinterpret_cast<const std::uint8_t*>(archive.data()), archive.size(), [&](const auto& file) {
    const ZipMembers parts = read_zip_directory(*file);
    members.emplace();
    for (const auto& [name, part] : parts) members->emplace_back(name, archive.substr(part.offset, part.size));
  });
  return members;
}

void change_members(Members& members, Dice& dice) {
  auto& [name, content] = dice.pick(members);
  switch (dice.below(6)) {
    case 0:
      mutate_bytes(name);
      break;
    case 1:
      mutate_bytes(content);
      break;
    case 2:
      content.resize(dice.below(2 * content.size() + 2));
      break;
    case 3:
      members.erase(members.begin() + static_cast<std::ptrdiff_t>(dice.below(members.size())));
      break;
    default:
      members.insert(members.begin(), std::pair(dice.one_in(2) ? name : name + "x", content));
  }
}

std::string written(const Members& members, Dice& dice) {
  ZipWriter zip;
  for (const auto& [name, content] : members) {
    ZipWriter::Options options;
    if (dice.one_in(60)) options.method = static_cast<std::uint16_t>(dice.number());
    if (dice.one_in(60)) options.flags = static_cast<std::uint16_t>(dice.number());
    if (dice.one_in(60)) options.size = options.compressed_size = static_cast<std::uint32_t>(dice.number());
    if (dice.one_in(60)) options.local_header_offset = static_cast<std::uint32_t>(dice.number());
    if (dice.one_in(60)) options.extra = "\x01\x00\x08\x00" + little_endian(dice.number());
    zip.add(name, content, options);
  }
  return dice.one_in(10) ? zip.finish_zip64() : zip.finish();
}

}  // namespace

// Changes opcodes of the pickle, or members of the archive, which is written again with the right offsets. A legacy
// file is pickles one after another.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  return mutate_structure(data, size, max_size, seed, [](std::string_view input, Dice& dice) {
    auto members = members_of(input);
    if (!members || members->empty()) return std::optional(PickleMutator(dice).change(input));
    bool changed = false;
    for (auto& [name, content] : *members) {
      if (!name.ends_with("data.pkl") || dice.one_in(4)) continue;
      content = PickleMutator(dice).change(content);
      changed = true;
    }
    if (!changed) change_members(*members, dice);
    return std::optional(written(*members, dice));
  });
}
