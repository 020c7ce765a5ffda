#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "tests/support/read_bytes.h"
#include "weights/model/python_config.h"
#include "weights/model/tensor_names.h"
#include "weights/torch/pth.h"

namespace {

using namespace minimind;

CanonicalTensors tensors_of(const std::string& path) {
  return to_canonical_names(read_pth(InputFile::open(path)), path);
}

}  // namespace

// Reads the input as MiniMind's own code, with the tensors of two generations.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const CanonicalTensors tensors[] = {tensors_of("tests/golden/v1-dense/model.pth"),
                                             tensors_of("tests/golden/v3-dense/model.pth")};
  const PythonFile file{"fuzz.py", std::string(reinterpret_cast<const char*>(data), size)};
  for (const CanonicalTensors& canonical : tensors) {
    for (const auto& other : {std::optional<PythonFile>(), std::optional(file)}) {
      try {
        read_python_config({.config = file, .equations = other, .trainer = other}, canonical);
      } catch (const Error&) {
      }
    }
  }
  return 0;
}
