#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "tests/fuzz/mutate_json.h"
#include "tests/fuzz/scratch_folder.h"
#include "weights/base/error.h"
#include "weights/checkpoint/open_checkpoint.h"

// Opens a folder of two shards with the input as its index: that of .safetensors, or of .bin if the first byte is odd.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace minimind;
  namespace fs = std::filesystem;
  if (size == 0) return 0;
  static const ScratchFolder folders;
  static const std::string folder = [] {
    const fs::path golden = "tests/golden/hf-qwen3-sharded", copy = fs::path(folders.path()) / "model";
    fs::create_directory(copy);
    for (const char* const name :
         {"config.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}) {
      fs::copy_file(golden / name, copy / name);
    }
    return copy.string();
  }();
  const char* const names[] = {"model/model.safetensors.index.json", "model/pytorch_model.bin.index.json"};
  const char* const name = names[data[0] % 2];
  fs::remove(fs::path(folders.path()) / names[1 - data[0] % 2]);
  folders.write(name, {reinterpret_cast<const char*>(data) + 1, size - 1});
  try {
    open_checkpoint(folder, {});
  } catch (const Error&) {
  }
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  constexpr std::string_view words[] = {"weight_map",
                                        "metadata",
                                        "total_size",
                                        "model.norm.weight",
                                        "model-00001-of-00002.safetensors",
                                        "model-00002-of-00002.safetensors",
                                        "config.json",
                                        "../model.safetensors",
                                        "/dev/zero",
                                        "."};
  return minimind::mutate_json(data, size, max_size, seed, words, 1);
}
