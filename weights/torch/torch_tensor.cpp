#include "weights/torch/torch_tensor.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "weights/base/error.h"
#include "weights/base/text.h"
#include "weights/tensor/shape.h"

namespace minimind {
namespace {

using pickle::Call;
using pickle::Document;
using pickle::Id;
using pickle::None;
using pickle::PersistentId;
using pickle::Text;
using pickle::Tuple;
using pickle::Value;

// The largest number of dimensions of PyTorch's own operators.
constexpr std::size_t most_dimensions = 64;
constexpr std::size_t most_copied = std::size_t{4} << 30;
constexpr std::size_t longest_key = 64;  // torch.save's keys are numbers
// Bytes whose copying takes as long as another call of the system.
constexpr std::size_t read_cost = 4096;

constexpr std::pair<std::string_view, DType> storage_classes[] = {
    {"torch.FloatStorage", DType::f32},
    {"torch.HalfStorage", DType::f16},
    {"torch.BFloat16Storage", DType::bf16},
    {"torch.DoubleStorage", DType::f64},
    {"torch.LongStorage", DType::i64},
    {"torch.IntStorage", DType::i32},
    {"torch.ShortStorage", DType::i16},
    {"torch.CharStorage", DType::i8},
    {"torch.ByteStorage", DType::u8},
    {"torch.BoolStorage", DType::boolean},
    {"torch.storage.UntypedStorage", DType::u8},
};

[[noreturn]] void fail(const std::string& where, std::string_view reason) {
  throw Error(fmt::format("{}: {}", where, reason));
}

std::size_t to_size(const Value& value, std::string_view what, const std::string& where) {
  const auto* integer = std::get_if<std::int64_t>(&value);
  if (integer == nullptr) fail(where, fmt::format("the {} is a {}, expected an int", what, pickle::type_name(value)));
  if (*integer < 0) fail(where, fmt::format("the {} is {}, expected 0 or more", what, *integer));
  return stated_size(static_cast<std::uint64_t>(*integer));
}

std::vector<std::size_t> to_sizes(const Document& document, const Value& value, std::string_view what,
                                  const std::string& where) {
  const auto* tuple = std::get_if<Tuple>(&value);
  if (tuple == nullptr) fail(where, fmt::format("the {} is a {}, expected a tuple", what, pickle::type_name(value)));
  if (tuple->items.size() > most_dimensions) {
    fail(where,
         fmt::format("the {} has {} dimensions, expected at most {}", what, tuple->items.size(), most_dimensions));
  }
  std::vector<std::size_t> sizes;
  for (const Id item : tuple->items) sizes.push_back(to_size(document.at(item), what, where));
  return sizes;
}

StorageReference::View read_view(const Document& document, const Value& value, const std::string& where) {
  const auto* view = std::get_if<Tuple>(&value);
  if (view == nullptr || view->items.size() != 3) fail(where, "the view of a storage is not a triple");
  return {to_size(document.at(view->items[1]), "offset of a storage view", where),
          to_size(document.at(view->items[2]), "size of a storage view", where)};
}

// The arguments of _rebuild_tensor(storage, offset, size, stride) and _rebuild_tensor_v2(..., requires_grad,
// backward_hooks, metadata) that locate the elements.
struct Layout {
  PersistentId storage;
  std::size_t offset;
  std::vector<std::size_t> shape;
  std::vector<std::size_t> strides;  // in elements, like offset
};

// Returns the Call that builds the tensor. A parameter is a tensor with attributes that are not used here.
const Call& unwrap_parameter(const Document& document, const Call& call, const std::string& where) {
  if (!call.callable.starts_with("torch._utils._rebuild_parameter")) return call;
  const auto& arguments = std::get<Tuple>(document.at(call.arguments)).items;
  const auto* tensor = arguments.empty() ? nullptr : std::get_if<Call>(&document.at(arguments[0]));
  if (tensor == nullptr || !tensor->callable.starts_with("torch._utils._rebuild_tensor")) {
    fail(where, "is a parameter made of something other than a tensor");
  }
  return *tensor;
}

Layout read_layout(const Document& document, const Value& value, const std::string& where) {
  const Call& call = unwrap_parameter(document, std::get<Call>(value), where);
  const auto& arguments = std::get<Tuple>(document.at(call.arguments)).items;
  const bool v2 = call.callable == "torch._utils._rebuild_tensor_v2";
  const std::size_t least = v2 ? 6 : 4;
  if (arguments.size() < least || arguments.size() > (v2 ? 7 : 4)) {
    fail(where, fmt::format("is built from {} values, expected {}", arguments.size(), least));
  }
  const auto* metadata = arguments.size() == 7 ? std::get_if<pickle::Dict>(&document.at(arguments[6])) : nullptr;
  const bool plain = arguments.size() < 7 || std::holds_alternative<None>(document.at(arguments[6])) ||
                     (metadata != nullptr && metadata->entries.empty());
  if (!plain) fail(where, "is a conjugate or negative view; save tensor.resolve_conj().resolve_neg() instead");
  const auto* storage = std::get_if<PersistentId>(&document.at(arguments[0]));
  if (storage == nullptr) {
    fail(where, fmt::format("is built from a {}, expected a storage", pickle::type_name(document.at(arguments[0]))));
  }
  return {*storage, to_size(document.at(arguments[1]), "offset", where),
          to_sizes(document, document.at(arguments[2]), "shape", where),
          to_sizes(document, document.at(arguments[3]), "stride", where)};
}

// Returns the number of elements from the first to the last that the layout reaches, both included; std::nullopt on
// overflow.
std::optional<std::size_t> reach(const Layout& layout) {
  std::size_t last = 0;
  for (std::size_t i = 0; i < layout.shape.size(); ++i) {
    if (layout.shape[i] == 0) return 0;
    const auto span = checked_product(layout.shape[i] - 1, layout.strides[i]);
    if (!span || *span > SIZE_MAX - 1 - last) return std::nullopt;
    last += *span;
  }
  return last + 1;
}

// Returns the number of elements, after checking that all are within the storage's `available` elements.
std::size_t checked_element_count(const Layout& layout, std::size_t available, const std::string& where) {
  if (layout.strides.size() != layout.shape.size()) {
    fail(where, fmt::format("has {} sizes and {} strides", layout.shape.size(), layout.strides.size()));
  }
  const auto elements = element_count(layout.shape);
  const auto reached = reach(layout);
  if (!elements || !reached || layout.offset > available || *reached > available - layout.offset) {
    fail(where, fmt::format("shape {}, strides {} and offset {} pass its storage of {} elements; the file is corrupt",
                            shape_text(layout.shape), shape_text(layout.strides), layout.offset, available));
  }
  return *elements;
}

bool is_contiguous(const Layout& layout) {
  std::size_t expected = 1;
  for (std::size_t i = layout.shape.size(); i-- > 0;) {
    if (layout.shape[i] == 1) continue;
    if (layout.strides[i] != expected) return false;
    expected *= layout.shape[i];
  }
  return true;
}

// The positions of the elements of a layout in row-major order of the shape, in elements from the first.
class Positions {
 public:
  explicit Positions(const Layout& layout) {
    for (std::size_t i = 0; i < layout.shape.size(); ++i) {
      if (layout.shape[i] == 1) continue;
      sizes_.push_back(layout.shape[i]);
      steps_.push_back(layout.strides[i]);
    }
    index_.resize(sizes_.size());
  }

  std::size_t next() {
    const std::size_t here = position_;
    for (std::size_t axis = sizes_.size(); axis-- > 0;) {
      position_ += steps_[axis];
      if (++index_[axis] < sizes_[axis]) break;
      position_ -= steps_[axis] * sizes_[axis];
      index_[axis] = 0;
    }
    return here;
  }

 private:
  std::vector<std::size_t> sizes_, steps_, index_;
  std::size_t position_ = 0;
};

// Copies the elements in row-major order of the shape. All `spanned` bytes are read at once, unless the elements are so
// far apart that reading each alone is less work.
std::vector<std::byte> gather(const InputFile& file, FilePart storage, const Layout& layout, std::size_t elements,
                              std::size_t width, std::size_t spanned) {
  const std::size_t first = storage.offset + layout.offset * width;
  std::vector<std::byte> all(spanned / read_cost > elements ? 0 : spanned);
  if (!all.empty()) file.read(first, all);
  std::vector<std::byte> result(elements * width);
  Positions positions(layout);
  for (std::size_t i = 0; i < elements; ++i) {
    const std::size_t at = positions.next() * width;
    const auto element = std::span(result).subspan(i * width, width);
    if (all.empty()) {
      file.read(first + at, element);
    } else {
      std::memcpy(element.data(), all.data() + at, width);
    }
  }
  return result;
}

}  // namespace

StorageReference read_storage_reference(const Document& document, PersistentId id, const std::string& where) {
  const auto* tuple = std::get_if<Tuple>(&document.at(id.id));
  if (tuple == nullptr || tuple->items.size() < 5 || tuple->items.size() > 6) {
    fail(where, "a storage is not described by 5 or 6 values, as torch.save does");
  }
  const auto item = [&](std::size_t i) -> const Value& { return document.at(tuple->items[i]); };
  const auto* kind = std::get_if<Text>(&item(0));
  const auto* storage_class = std::get_if<pickle::Global>(&item(1));
  const auto* key = std::get_if<Text>(&item(2));
  if (kind == nullptr || kind->text != "storage" || storage_class == nullptr || key == nullptr) {
    fail(where, "a storage is not described as ('storage', class, key, ...), as torch.save does");
  }
  const auto* found = std::find_if(std::begin(storage_classes), std::end(storage_classes),
                                   [&](const auto& entry) { return entry.first == storage_class->name; });
  if (found == std::end(storage_classes)) {
    fail(where, fmt::format("{} is not a class of storage", quote(storage_class->name)));
  }
  if (key->text.size() > longest_key) {
    fail(where, fmt::format("its storage {} has a key of {} bytes, expected at most {}; save it again with torch.save",
                            quote(key->text), key->text.size(), longest_key));
  }
  StorageReference reference{found->second, key->text, to_size(item(4), "size of a storage", where), std::nullopt};
  if (tuple->items.size() == 6 && !std::holds_alternative<None>(item(5))) {
    reference.view = read_view(document, item(5), where);
  }
  return reference;
}

bool is_torch_tensor(const Value& value) {
  const auto* call = std::get_if<Call>(&value);
  return call != nullptr && call->callable.starts_with("torch._utils._rebuild_");
}

TorchTensorReader::TorchTensorReader(const Document& document, const StorageParts& storages,
                                     std::shared_ptr<const InputFile> file)
    : document_(document),
      storages_(storages),
      file_(std::move(file)),
      copy_budget_(std::min(2 * file_->size(), most_copied)),
      read_budget_(16 * file_->size()),
      size_budget_(4 * file_->size()) {}

FilePart TorchTensorReader::find_storage(const StorageReference& reference, const std::string& where) const {
  const auto found = storages_.find(reference.key);
  if (found == storages_.end()) {
    fail(where, fmt::format("its storage {} is not in the file; copy or download it again", quote(reference.key)));
  }
  const FilePart storage = found->second;
  const std::size_t width = size_of(reference.dtype);
  if (checked_product(reference.elements, width) != storage.size) {
    fail(where, fmt::format("its storage {} should be {} elements of {} and has {} bytes; copy or download it again",
                            quote(reference.key), reference.elements, name_of(reference.dtype), storage.size));
  }
  if (!reference.view) return storage;
  const auto [offset, elements] = *reference.view;
  if (offset > reference.elements || elements > reference.elements - offset) {
    fail(where, fmt::format("it views {} elements at {} of a storage of {}", elements, offset, reference.elements));
  }
  return {storage.offset + offset * width, elements * width};
}

StoredTensor TorchTensorReader::read(const Value& value, std::string_view name) {
  const std::string where = fmt::format("{}: tensor {}", file_->path(), quote(name));
  const Layout layout = read_layout(document_, value, where);
  const StorageReference reference = read_storage_reference(document_, layout.storage, where);
  const std::size_t width = size_of(reference.dtype);
  const FilePart storage = find_storage(reference, where);
  const std::size_t elements = checked_element_count(layout, storage.size / width, where);
  const bool is_view = elements == 0 || is_contiguous(layout);
  if (!is_view && elements > storage.size / width) {
    fail(where, fmt::format("is expanded to {} elements of a storage of {}; save tensor.contiguous() instead", elements,
                            storage.size / width));
  }
  // Tied weights share a storage, but a model needs memory for each tensor.
  if (elements > size_budget_ / width) {
    fail(where, "is one tensor too many that shares its storage with others; save clones of them");
  }
  size_budget_ -= elements * width;

  StoredTensor tensor{reference.dtype, layout.shape, {}, file_->path()};
  if (is_view) {
    tensor.data = StoredBytes(file_, {storage.offset + layout.offset * width, elements * width});
    return tensor;
  }
  const std::size_t spanned = reach(layout).value() * width, work = std::min(spanned, elements * read_cost);
  if (elements * width > copy_budget_ || spanned > most_copied || work > read_budget_) {
    fail(where, "is one transposed view too many of its file, or too long; save tensor.contiguous() instead");
  }
  copy_budget_ -= elements * width;
  read_budget_ -= work;
  tensor.data = StoredBytes(gather(*file_, storage, layout, elements, width, spanned));
  return tensor;
}

}  // namespace minimind
