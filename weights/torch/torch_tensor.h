#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weights/io/mapped_file.h"
#include "weights/tensor/dtype.h"
#include "weights/tensor/stored_tensor.h"
#include "weights/torch/pickle.h"

namespace minimind {

// The bytes of each storage of a torch.save file, by the key that its pickle uses.
using StorageBytes = std::map<std::string_view, std::span<const std::byte>>;

// A persistent id of torch.save: ("storage", class, key, location, number of elements), and in legacy files a sixth
// item, None or the part (key, offset, number of elements) of the storage that is meant.
struct StorageReference {
  struct View {
    std::size_t offset;
    std::size_t elements;
  };
  DType dtype;
  std::string_view key;
  std::size_t elements;
  std::optional<View> view;
};

// Throws Error, starting with `where`, if `id` is not such a reference.
StorageReference read_storage_reference(const pickle::Document& document, pickle::PersistentId id,
                                        const std::string& where);

// Whether the pickle builds a tensor or a parameter here.
bool is_torch_tensor(const pickle::Value& value);

// Turns what a pickle says of tensors into tensors.
class TorchTensorReader {
 public:
  // All are kept by reference and must outlive the reader, except `file`, which the tensors keep alive.
  TorchTensorReader(const pickle::Document& document, const StorageBytes& storages,
                    std::shared_ptr<const MappedFile> file);

  // The tensor that `value`, for which is_torch_tensor holds, builds. Sizes, strides and offset are checked against
  // the storage. Throws Error naming the file and `name`. For what is copied see read_pth.
  StoredTensor read(const pickle::Value& value, std::string_view name);

 private:
  std::span<const std::byte> find_storage(const StorageReference& reference, const std::string& where) const;

  const pickle::Document& document_;
  const StorageBytes& storages_;
  std::shared_ptr<const MappedFile> file_;
  std::size_t copy_budget_;  // bytes that may still be copied
};

}  // namespace minimind
