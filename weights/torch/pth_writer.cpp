#include "weights/torch/pth_writer.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "weights/base/error.h"
#include "weights/base/text.h"
#include "weights/torch/zip_writer.h"

namespace minimind {
namespace {

// torch.save's name for the folder in the archive if it does not know the file's name.
constexpr std::string_view folder = "archive/";

std::string_view storage_class(const OutputTensor& tensor) {
  require_float_type(tensor, ".pth");
  return tensor.dtype == DType::f32 ? "FloatStorage" : tensor.dtype == DType::f16 ? "HalfStorage" : "BFloat16Storage";
}

// A pickle of protocol 2, written opcode by opcode (Python's Lib/pickletools.py lists them).
class Pickle {
 public:
  void op(std::string_view opcodes) { text_ += opcodes; }
  void global(std::string_view module, std::string_view name) { text_ += fmt::format("c{}\n{}\n", module, name); }

  void text(std::string_view value) {
    op("X");
    put(static_cast<std::uint32_t>(value.size()));
    text_ += value;
  }

  void integer(std::size_t value) {
    if (value < std::size_t{1} << 31) {
      op("J");
      put(static_cast<std::uint32_t>(value));
    } else {
      op("\x8a\x08");
      put(std::uint64_t{value});
    }
  }

  void integers(const std::vector<std::size_t>& values) {
    op("(");
    for (const std::size_t value : values) integer(value);
    op("t");
  }

  void empty_ordered_dict() {
    global("collections", "OrderedDict");
    op(")R");
  }

  const std::string& bytes() const { return text_; }

 private:
  template <class Number>
  void put(Number value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }

  std::string text_;
};

std::size_t element_count_of(const OutputTensor& tensor) {
  return byte_count(tensor) / size_of(tensor.dtype);
}

// Row-major, in elements. A size of 0 counts as 1, as in torch.
std::vector<std::size_t> strides_of(const std::vector<std::size_t>& shape) {
  std::vector<std::size_t> strides(shape.size());
  std::size_t stride = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<std::size_t>(shape[i], 1);
  }
  return strides;
}

// name: _rebuild_tensor_v2(storage, offset, shape, strides, requires_grad, backward_hooks), where the storage is the
// persistent id ("storage", class, key, location, elements).
void put_entry(Pickle& pickle, const std::string& name, const OutputTensor& tensor, std::size_t key) {
  pickle.text(name);
  pickle.global("torch._utils", "_rebuild_tensor_v2");
  pickle.op("((");
  pickle.text("storage");
  pickle.global("torch", storage_class(tensor));
  pickle.text(std::to_string(key));
  pickle.text("cpu");
  pickle.integer(element_count_of(tensor));
  pickle.op("tQ");
  pickle.integer(0);
  pickle.integers(tensor.shape);
  pickle.integers(strides_of(tensor.shape));
  pickle.op("\x89");
  pickle.empty_ordered_dict();
  pickle.op("tR");
}

std::string state_dict_pickle(const std::vector<OutputTensor>& tensors,
                              const std::vector<std::pair<std::string, std::string>>& tied) {
  Pickle pickle;
  pickle.op("\x80\x02");
  pickle.empty_ordered_dict();
  pickle.op("(");
  for (std::size_t key = 0; key < tensors.size(); ++key) put_entry(pickle, tensors[key].name, tensors[key], key);
  for (const auto& [name, shared] : tied) {
    const auto tensor = std::find_if(tensors.begin(), tensors.end(),
                                     [&, &of = shared](const OutputTensor& each) { return each.name == of; });
    if (tensor == tensors.end()) {
      throw Error(fmt::format("{} cannot share the storage of {}, which is not written", quote(name), quote(shared)));
    }
    put_entry(pickle, name, *tensor, static_cast<std::size_t>(tensor - tensors.begin()));
  }
  pickle.op("u.");
  return pickle.bytes();
}

}  // namespace

void write_pth(OutputFile& file, const std::vector<OutputTensor>& tensors,
               const std::vector<std::pair<std::string, std::string>>& tied, std::size_t threads) {
  ZipFileWriter zip(file);
  zip.add(fmt::format("{}data.pkl", folder), state_dict_pickle(tensors, tied));
  zip.add(fmt::format("{}byteorder", folder), "little");
  for (std::size_t key = 0; key < tensors.size(); ++key) {
    zip.add(fmt::format("{}data/{}", folder, key), byte_count(tensors[key]),
            [&](const ZipFileWriter::Write& write) { encode(tensors[key], threads, write); });
  }
  zip.add(fmt::format("{}version", folder), "3\n");
  zip.finish();
}

}  // namespace minimind
