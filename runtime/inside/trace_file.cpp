#include "runtime/inside/trace_file.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <span>

#include "weights/base/error.h"
#include "weights/base/text.h"
#include "weights/huggingface/safetensors.h"
#include "weights/huggingface/safetensors_writer.h"
#include "weights/io/json_fields.h"
#include "weights/tensor/output_tensor.h"

namespace minimind {
namespace {

std::vector<std::int32_t> read_ids(const std::string& text, const std::string& path) {
  std::vector<std::int32_t> ids;
  for (std::string_view rest = text;; rest.remove_prefix(1)) {
    const auto id = take_number<std::int32_t>(rest);
    if (!id || !(rest.empty() || rest.starts_with(','))) {
      throw Error(fmt::format("{}: its metadata has tokens {}, expected ids such as \"1,320,402\"", path,
                              quote(text.substr(0, 60))));
    }
    ids.push_back(*id);
    if (rest.empty()) return ids;
  }
}

}  // namespace

void write_trace(OutputFile& file, const Recording& recording, const Config& config, const std::string& model,
                 const std::string& sha256, const std::vector<std::int32_t>& tokens) {
  std::vector<StoredTensor> stored;
  std::vector<OutputTensor> tensors;
  nlohmann::ordered_json axes = nlohmann::ordered_json::object();
  std::vector<nlohmann::ordered_json::object_t::value_type>& axes_by_name =
      axes.get_ref<nlohmann::ordered_json::object_t&>();  // which would look for each name among all before it
  stored.reserve(recording.points().size());
  for (std::size_t i = 0; i < recording.points().size(); ++i) {
    const Point& point = recording.points()[i];
    if (recording.values(i).empty()) continue;  // of an expert that no token chose
    const std::string name = own_name(config, point.name);
    stored.push_back({DType::f32, recording.shape(i), StoredBytes(std::as_bytes(recording.values(i)), nullptr), name});
    tensors.push_back({.name = name, .shape = stored.back().shape, .sources = {&stored.back()}});
    std::vector<std::string_view> names;
    for (const Axis& axis : point.axes) names.push_back(axis.name);
    axes_by_name.emplace_back(name, names);
  }
  write_safetensors(file, tensors, 1,
                    {{"format", "pt"},
                     {"tokens", fmt::format("{}", fmt::join(tokens, ","))},
                     {"model", model},
                     {"sha256", sha256},
                     {"family", std::string(name_of(config.family))},
                     {"axes", dump_json(axes)}});
}

Trace read_trace(std::shared_ptr<const InputFile> file) {
  const std::string path = file->path();
  if (!looks_like_safetensors(file->start())) {
    throw Error(fmt::format("{}: is not a .safetensors file, expected a trace; minimind trace writes one", path));
  }
  std::map<std::string, std::string> metadata;
  StoredTensors tensors = read_safetensors(file, &metadata);
  if (!metadata.contains("tokens")) {
    throw Error(
        fmt::format("{}: its metadata has no tokens, expected a trace with the ids of its text, such as "
                    "\"1,320,402\"",
                    path));
  }
  Trace trace{path, read_ids(metadata["tokens"], path), metadata["model"], metadata["sha256"]};
  for (auto& [own, tensor] : tensors) {
    const std::string name = hugging_face_name(own);
    if (!is_float_type(tensor.dtype)) {
      throw Error(fmt::format("{}: point {} is {}, expected f32, f16 or bf16; save it with .float()", path, quote(own),
                              name_of(tensor.dtype)));
    }
    if (!trace.own_names.emplace(name, own).second) {
      throw Error(fmt::format("{}: point {} is repeated under another name", path, quote(own)));
    }
    trace.tensors.emplace(name, std::move(tensor));
  }
  return trace;
}

}  // namespace minimind
