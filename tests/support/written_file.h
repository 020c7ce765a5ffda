#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/stored.h"
#include "tests/support/temporary_file.h"
#include "tests/support/temporary_folder.h"
#include "weights/io/input_file.h"
#include "weights/io/output_file.h"
#include "weights/tensor/output_tensor.h"

namespace minimind {

// Opens the file that write(OutputFile&) writes. It stays readable after its name is removed.
template <class Write>
std::shared_ptr<const InputFile> written_file(const Write& write) {
  const TemporaryFolder folder;
  OutputFile file(folder.path() + "/written");
  write(file);
  file.commit();
  return InputFile::open(file.path());
}

// Returns output tensors that are written unchanged, in the order of their names.
inline std::vector<OutputTensor> unchanged(const StoredTensors& tensors) {
  std::vector<OutputTensor> result;
  for (const auto& [name, tensor] : tensors) {
    result.push_back({.name = name, .dtype = tensor.dtype, .shape = tensor.shape, .sources = {&tensor}});
  }
  return result;
}

// An empty matrix, a scalar, and vectors and matrices of each float type with odd sizes.
inline StoredTensors tensors_of_all_float_types() {
  StoredTensors tensors;
  tensors.emplace("scalar", f32_tensor({}, {2.5f}));
  tensors.emplace("empty", zeros({0, 3}));
  tensors.emplace("model.layers.0.weight", counting_tensor({5, 7}));
  tensors.emplace("half", make_tensor(DType::f16, {3}, std::string("\x00\x3C\x00\xC0\xFF\x7B", 6)));
  tensors.emplace("brain", make_tensor(DType::bf16, {1, 1}, std::string("\x80\x3F", 2)));
  return tensors;
}

inline void expect_same(const StoredTensors& got, const StoredTensors& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (const auto& [name, tensor] : expected) {
    ASSERT_TRUE(got.contains(name)) << name;
    EXPECT_EQ(got.at(name).dtype, tensor.dtype) << name;
    EXPECT_EQ(got.at(name).shape, tensor.shape) << name;
    EXPECT_EQ(as_string(got.at(name).data), as_string(tensor.data)) << name;
  }
}

}  // namespace minimind
