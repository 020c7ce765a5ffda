#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "weights/io/input_file.h"
#include "weights/tensor/dtype.h"
#include "weights/tensor/stored_tensor.h"
#include "weights/torch/pickle.h"

namespace minimind {

// Where each storage of a torch.save file is, by its key in the pickle.
using StorageParts = std::map<std::string, FilePart, std::less<>>;

// A persistent id of torch.save: ("storage", class, key, location, number of elements). Legacy files have a sixth item:
// None or the referenced part (key, offset, number of elements) of the storage.
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

// Returns true if the value is a tensor or a parameter.
bool is_torch_tensor(const pickle::Value& value);

// Builds tensors from their descriptions in a pickle.
class TorchTensorReader {
 public:
  // The reader keeps references to all arguments, which must outlive it, except `file`, which the tensors keep alive.
  TorchTensorReader(const pickle::Document& document, const StorageParts& storages,
                    std::shared_ptr<const InputFile> file);

  // Returns the tensor that `value` describes; is_torch_tensor(value) must hold. Checks sizes, strides and offset
  // against the storage. Throws Error naming the file and `name`. read_pth states which tensors are copied.
  StoredTensor read(const pickle::Value& value, std::string_view name);

 private:
  FilePart find_storage(const StorageReference& reference, const std::string& where) const;

  const pickle::Document& document_;
  const StorageParts& storages_;
  std::shared_ptr<const InputFile> file_;
  std::size_t copy_budget_;  // bytes that may still be copied
  std::size_t read_budget_;  // bytes that may still be read for copies, each call of the system as some bytes
  std::size_t size_budget_;  // bytes that further tensors may have, copied or not
};

}  // namespace minimind
