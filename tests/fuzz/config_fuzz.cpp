#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tests/fuzz/mutate_json.h"
#include "tests/support/read_bytes.h"
#include "weights/checkpoint/open_checkpoint.h"

// Opens a small model with the input as its config.json.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace minimind;
  read_bytes_at_path(data, size, [](const std::string& path) {
    open_checkpoint("tests/golden/v3-dense/model.pth", {.overrides = {}, .config_path = path, .loras = {}});
  });
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  constexpr std::string_view words[] = {"model_type",
                                        "minimind",
                                        "llama",
                                        "qwen3",
                                        "qwen3_moe",
                                        "hidden_size",
                                        "num_hidden_layers",
                                        "num_attention_heads",
                                        "num_key_value_heads",
                                        "head_dim",
                                        "vocab_size",
                                        "intermediate_size",
                                        "rope_theta",
                                        "rope_scaling",
                                        "rope_parameters",
                                        "factor",
                                        "type",
                                        "yarn",
                                        "original_max_position_embeddings",
                                        "beta_fast",
                                        "beta_slow",
                                        "rms_norm_eps",
                                        "hidden_act",
                                        "silu",
                                        "gelu",
                                        "num_experts",
                                        "num_experts_per_tok",
                                        "n_routed_experts",
                                        "n_shared_experts",
                                        "norm_topk_prob",
                                        "tie_word_embeddings",
                                        "eos_token_id",
                                        "torch_dtype",
                                        "use_moe",
                                        "max_position_embeddings",
                                        "dim",
                                        "n_layers"};
  return minimind::mutate_json(data, size, max_size, seed, words);
}
