#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "tests/support/little_endian.h"
#include "tests/support/temporary_file.h"
#include "weights/base/error.h"
#include "weights/gguf/reader.h"
#include "weights/huggingface/safetensors.h"
#include "weights/torch/pth.h"

// Real checkpoints with a few bytes changed. Reading one must give tensors or an Error: any other exception fails the
// test, and so does a signal or, if the build has them, a sanitizer.

namespace minimind {
namespace {

using Random = std::mt19937;
using Reader = StoredTensors (*)(std::shared_ptr<const InputFile>);

constexpr int rounds_per_file = 100;

std::size_t below(Random& random, std::size_t limit) {
  return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
}

// Half of the corruption is at the ends, where headers and directories are.
std::size_t position(Random& random, std::size_t size) {
  const std::size_t end = std::min<std::size_t>(size, 4096);
  switch (below(random, 4)) {
    case 0:
      return below(random, end);
    case 1:
      return size - 1 - below(random, end);
    default:
      return below(random, size);
  }
}

void damage_once(Random& random, std::string& bytes) {
  constexpr std::uint64_t numbers[] = {0, 1, 0x7FFFFFFF, 0xFFFFFFFF, std::uint64_t{1} << 40, INT64_MAX, UINT64_MAX};
  const std::size_t at = position(random, bytes.size());
  switch (below(random, 6)) {
    case 0:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(random, 8)));
      break;
    case 1:
      bytes[at] = static_cast<char>(below(random, 256));
      break;
    case 2:
      bytes.replace(at, 8, little_endian(numbers[below(random, std::size(numbers))]));
      break;
    case 3:
      bytes.erase(at, 1 + below(random, 64));
      break;
    case 4:
      bytes.insert(at, 1 + below(random, 16), static_cast<char>(below(random, 256)));
      break;
    default:  // a part of the file over another
      bytes.replace(at, 32, bytes.substr(below(random, bytes.size()), 32));
  }
  if (bytes.empty()) bytes.push_back('\0');
}

std::vector<std::string> golden_files(const std::string& extension, const std::string& folder = "golden") {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(MINIMIND_SOURCE_DIR "/tests/" + folder)) {
    if (entry.path().extension() == extension) paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// The first and the last byte of every tensor, so that a view outside the file does not go unnoticed.
unsigned touch(const StoredTensors& tensors) {
  unsigned sum = 0;
  for (const auto& [name, tensor] : tensors) {
    if (tensor.data.size() == 0) continue;
    std::vector<std::byte> buffer;
    sum += std::to_integer<unsigned>(*tensor.data.read(0, 1, buffer));
    sum += std::to_integer<unsigned>(*tensor.data.read(tensor.data.size() - 1, 1, buffer));
  }
  return sum;
}

void read_damaged(const std::string& path, Reader reader, int rounds = rounds_per_file) {
  const std::string whole = read_whole_file(path);
  const TemporaryFile file;
  int refused = 0;
  for (int round = 0; round < rounds; ++round) {
    Random random(static_cast<unsigned>(round));
    std::string bytes = whole;
    for (std::size_t count = 1 + below(random, 4); count > 0; --count) damage_once(random, bytes);
    if (below(random, 5) == 0) bytes.resize(1 + below(random, bytes.size()));
    file.write(bytes);
    try {
      touch(reader(file.open()));
    } catch (const Error& error) {
      ++refused;
      EXPECT_TRUE(std::string(error.what()).starts_with(file.path())) << path << " round " << round << error.what();
    } catch (const std::exception& error) {
      ADD_FAILURE() << path << " round " << round << ": " << error.what();
    }
  }
  EXPECT_GT(refused, rounds / 4) << path << ": the damage is too slight to test anything";
}

TEST(CorruptFiles, TorchSaveFilesGiveTensorsOrAnError) {
  for (const std::string& path : golden_files(".pth")) read_damaged(path, read_pth);
}

TEST(CorruptFiles, SafetensorsGiveTensorsOrAnError) {
  const Reader read = [](std::shared_ptr<const InputFile> file) { return read_safetensors(std::move(file)); };
  for (const std::string& path : golden_files(".safetensors")) read_damaged(path, read);
}

// Small files, so that most of the damage is done to their headers.
TEST(CorruptFiles, GgufGivesTensorsOrAnError) {
  const auto tensors_of = [](std::shared_ptr<const InputFile> file) { return read_gguf(std::move(file)).tensors; };
  for (const std::string& path : golden_files(".gguf", "golden_gguf")) read_damaged(path, tensors_of, 1000);
}

}  // namespace
}  // namespace minimind
