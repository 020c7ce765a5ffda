#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "runtime/inside/trace_difference.h"
#include "runtime/inside/trace_file.h"
#include "runtime/kernels/instruction_sets.h"
#include "tests/fuzz/mutate_safetensors.h"
#include "tests/support/golden_model.h"
#include "tests/support/read_bytes.h"

// Compares a small model with the input as a trace. Of a long text, whose passes take their time, the trace is only
// read.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace minimind;
  static const Model model = load_golden_model(load_golden("v3-dense"));
  read_bytes(data, size, [](std::shared_ptr<const InputFile> file) {
    const Trace trace = read_trace(std::move(file));
    const TraceMatch matched = match(trace, model);
    for (const std::string& unknown : matched.unknown) nearest_point(model, unknown);
    if (trace.tokens.size() > 16) return;
    differences(trace,
                record(model, kernels::choose(), KvType::f32, matched.in_trace, trace.tokens, [](std::size_t) {}));
  });
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  static constexpr std::string_view words[] = {"dtype",
                                               "shape",
                                               "data_offsets",
                                               "__metadata__",
                                               "F32",
                                               "F16",
                                               "BF16",
                                               "tokens",
                                               "model",
                                               "sha256",
                                               "1,320,402",
                                               "-1",
                                               "model.embed_tokens",
                                               "model.layers.0",
                                               "model.layers.0.self_attn.scores",
                                               "layers.0.attention.wq",
                                               "lm_head",
                                               "output"};
  return minimind::mutate_safetensors(data, size, max_size, seed, words);
}
