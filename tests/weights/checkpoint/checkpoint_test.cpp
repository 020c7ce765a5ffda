#include "weights/checkpoint/open_checkpoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/support/gguf_bytes.h"
#include "tests/support/golden.h"
#include "tests/support/stored.h"
#include "tests/support/temporary_folder.h"

namespace minimind {
namespace {

using Json = nlohmann::json;

Checkpoint open_golden(const GoldenCase& golden) {
  OpenOptions options;
  if (golden.yarn) options.overrides.yarn = true;
  if (golden.lora_path) options.loras.push_back({*golden.lora_path, 1});
  return open_checkpoint(golden.model_path, options);
}

std::string open_error(const std::string& path, const OpenOptions& options = {}) {
  const std::string error = error_of([&] { open_checkpoint(path, options); });
  EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  return error;
}

void expect_in(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << text;
}

// The family that a case's checkpoint has for us: an export is of the class that config.json names.
std::string family_of(const GoldenCase& golden) {
  if (!golden.name.starts_with("hf-")) return golden.family;
  return Json::parse(read_whole_file(golden.folder + "/config.json")).at("model_type");
}

// Fails for a value of the case's config, which may have either name, that is not the one opened.
template <class Value>
void expect_same(const GoldenCase& golden, const char* name, const char* old_name, const Value& opened) {
  for (const char* key : {name, old_name}) {
    if (!golden.config.contains(key)) continue;
    EXPECT_EQ(opened, golden.config.at(key).get<Value>()) << key;
  }
}

class GoldenCheckpoint : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(EveryCase, GoldenCheckpoint, testing::ValuesIn(golden_names()), test_name);

TEST_P(GoldenCheckpoint, OpensWithTheConfigItWasWrittenWith) {
  const GoldenCase golden = load_golden(GetParam());
  const Config config = open_golden(golden).config;
  EXPECT_EQ(name_of(config.family), family_of(golden));
  expect_same(golden, "vocab_size", "vocab_size", config.vocab_size);
  expect_same(golden, "hidden_size", "dim", config.hidden_size);
  expect_same(golden, "num_hidden_layers", "n_layers", config.num_hidden_layers);
  expect_same(golden, "num_attention_heads", "n_heads", config.num_attention_heads);
  expect_same(golden, "num_key_value_heads", "n_kv_heads", config.num_key_value_heads);
  expect_same(golden, "rms_norm_eps", "norm_eps", config.rms_norm_eps);
  expect_same(golden, "rope_theta", "rope_theta", config.rope_theta);
  expect_same(golden, "tie_word_embeddings", "tie_word_embeddings", config.tie_word_embeddings);
  expect_same(golden, "hidden_act", "hidden_act", std::string(name_of(config.hidden_act)));
  EXPECT_EQ(config.head_dim, golden.config.value("head_dim", config.hidden_size / config.num_attention_heads));
  EXPECT_EQ(config.rope_scaling.has_value(), golden.config.value("inference_rope_scaling", false));
  EXPECT_EQ(config.eos_token_id, std::vector<std::int32_t>{golden.config.value("eos_token_id", 2)});
}

TEST_P(GoldenCheckpoint, OpensWithTheTensorsItWasWrittenWith) {
  const GoldenCase golden = load_golden(GetParam());
  const Config config = open_golden(golden).config;
  const bool mixture = golden.config.value("use_moe", false);
  EXPECT_EQ(config.num_experts > 0, mixture);
  if (!mixture) {
    expect_same(golden, "intermediate_size", "hidden_dim", config.intermediate_size);
    return;
  }
  expect_same(golden, "num_experts", "n_routed_experts", config.num_experts);
  expect_same(golden, "num_experts_per_tok", "num_experts_per_tok", config.num_experts_per_tok);
  expect_same(golden, "norm_topk_prob", "norm_topk_prob", config.norm_topk_prob);
  if (golden.config.contains("moe_intermediate_size")) {
    expect_same(golden, "moe_intermediate_size", "moe_intermediate_size", config.moe_intermediate_size);
  } else {
    expect_same(golden, "intermediate_size", "hidden_dim", config.moe_intermediate_size);
  }
  const Json shared = golden.config.value("n_shared_experts", Json(0));
  EXPECT_EQ(config.n_shared_experts, shared.is_boolean() ? std::size_t{shared.get<bool>()} : shared.get<std::size_t>());
}

TEST_P(GoldenCheckpoint, HasLmHeadOnlyIfItIsUntied) {
  const Checkpoint checkpoint = open_golden(load_golden(GetParam()));
  EXPECT_EQ(checkpoint.tensors.contains("lm_head.weight"), !checkpoint.config.tie_word_embeddings);
}

TEST(Checkpoint, ReportsTheFormat) {
  const std::map<std::string, std::string> formats{{"v3-dense", "torch.save"},
                                                   {"v3-legacy-pth", "torch.save"},
                                                   {"v3-untied", "torch.save"},
                                                   {"hf-llama", "safetensors"},
                                                   {"hf-qwen3-sharded", "safetensors, 2 shards"}};
  for (const auto& [name, format] : formats) EXPECT_EQ(open_golden(load_golden(name)).format, format) << name;
}

TEST(Checkpoint, ListsAMaxSeqLenThatTheModelDoesNotUse) {
  const TemporaryFolder folder;
  folder.write("config.json", R"({"model_type": "minimind", "hidden_size": 8, "intermediate_size": 6,
      "max_seq_len": 8192, "max_position_embeddings": 32768})");
  folder.write("model.safetensors", safetensors_bytes(SmallModel{}.tensors()));
  EXPECT_EQ(open_checkpoint(folder.path(), {}).unused_settings, std::vector<std::string>{"max_seq_len"});
}

TEST(Checkpoint, ReportsSkippedTensorsAndUnusedSettings) {
  EXPECT_FALSE(open_golden(load_golden("v1-moe")).skipped.empty()) << "the saved causal mask";
  EXPECT_TRUE(open_golden(load_golden("v3-dense")).skipped.empty());
  const auto unused = open_golden(load_golden("hf-llama")).unused_settings;
  EXPECT_NE(std::find(unused.begin(), unused.end(), "torch_dtype"), unused.end());
}

TEST(Checkpoint, IsRecognisedByItsContent) {
  const TemporaryFolder folder;
  for (const char* name : {"a.safetensors", "b.pth", "c", "d.bin"}) {
    EXPECT_EQ(open_checkpoint(folder.write(name, safetensors_bytes(SmallModel{}.tensors())), {}).format, "safetensors");
    EXPECT_EQ(open_checkpoint(folder.write(name, pth_bytes(SmallModel{}.tensors())), {}).format, "torch.save");
  }
}

TEST(Checkpoint, HasTheValuesOfTheFile) {
  const StoredTensors stored = SmallModel{}.tensors();
  const TemporaryFile file(pth_bytes(stored));
  const Checkpoint checkpoint = open_checkpoint(file.path(), {});
  ASSERT_EQ(checkpoint.tensors.size(), stored.size());
  for (const auto& [name, tensor] : stored)
    EXPECT_EQ(floats_of(checkpoint.tensors.at(name)), floats_of(tensor)) << name;
}

TEST(Checkpoint, EveryMissingTensorIsReported) {
  for (const SmallModel& model : {SmallModel{}, small_v1()}) {
    for (const auto& [name, tensor] : model.tensors()) {
      StoredTensors stored = model.tensors();
      stored.erase(name);
      const TemporaryFile file(safetensors_bytes(stored));
      const std::string error = open_error(file.path());
      EXPECT_TRUE(error.starts_with(file.path() + ": ")) << "without " << name << ": " << error;
    }
  }
}

TEST(Checkpoint, EveryTensorCutByARowIsRejected) {
  for (const SmallModel& model : {SmallModel{}, small_v1()}) {
    for (const auto& [name, tensor] : model.tensors()) {
      if (name.find("embed") != std::string::npos) continue;  // one token fewer is another vocabulary
      StoredTensors stored = model.tensors();
      Shape shape = tensor.shape;
      --shape[0];
      stored[name] = counting_tensor(shape);
      const TemporaryFile file(safetensors_bytes(stored));
      EXPECT_TRUE(open_error(file.path()).starts_with(file.path() + ": ")) << name;
    }
  }
}

TEST(Checkpoint, ATensorTooManyIsNamed) {
  StoredTensors stored = SmallModel{}.tensors();
  stored.emplace("model.layers.0.self_attn.q_proj.bias", counting_tensor({8}));
  const TemporaryFile file(safetensors_bytes(stored));
  expect_in(open_error(file.path()), {file.path(), "self_attn.q_proj.bias", "not part of any MiniMind text model"});
}

TEST(Checkpoint, ATensorOfIntegersIsNamed) {
  StoredTensors stored = SmallModel{}.tensors();
  stored["model.norm.weight"] = zeros({8}, DType::i64);
  const TemporaryFile file(safetensors_bytes(stored));
  expect_in(open_error(file.path()), {file.path(), "model.norm.weight", "i64"});
}

TEST(Checkpoint, OtherFilesAreNamed) {
  const TemporaryFile text("Once upon a time");
  expect_in(open_error(text.path()), {text.path(), "neither", "safetensors"});
  const TemporaryFile empty;
  expect_in(open_error(empty.path()), {empty.path(), "empty"});
  expect_in(open_error("/nowhere/model.pth"), {"/nowhere/model.pth", "No such file"});
  const TemporaryFolder folder;
  expect_in(open_error(folder.path()), {folder.path(), "folder without"});
  const TemporaryFile other(safetensors_bytes({{"transformer.wte.weight", zeros({2, 2})}}));
  expect_in(open_error(other.path()), {other.path(), "not a MiniMind checkpoint", "'transformer.wte.weight'"});
}

TEST(Checkpoint, ALoraInsteadOfAModelIsReported) {
  expect_in(open_error(*load_golden("v3-lora").lora_path), {"lora.pth"});
}

TEST(Checkpoint, EveryFormatTakesTheConfigNextToIt) {
  const TemporaryFolder folder;
  folder.write("config.json", R"({"rope_theta": 5e5})");
  const std::string bytes = safetensors_bytes(SmallModel{}.tensors());
  EXPECT_EQ(open_checkpoint(folder.write("model.safetensors", bytes), {}).config.rope_theta, 5e5);
  EXPECT_EQ(open_checkpoint(folder.write("model.bin", bytes), {}).config.rope_theta, 5e5);
  EXPECT_EQ(open_checkpoint(folder.path(), {}).config.rope_theta, 5e5);
  EXPECT_EQ(open_checkpoint(folder.write("model.pth", bytes), {}).config.rope_theta, 5e5);
}

TEST(Checkpoint, AConfigThatIsGivenReplacesTheOneNextToIt) {
  const TemporaryFolder folder;
  folder.write("config.json", R"({"rope_theta": 5e5, "vocab_size": 99})");
  const std::string model = folder.write("model.safetensors", safetensors_bytes(SmallModel{}.tensors()));
  OpenOptions options;
  options.config_path = folder.write("mine.json", R"({"rope_theta": 4e5})");
  const Checkpoint checkpoint = open_checkpoint(model, options);
  EXPECT_EQ(checkpoint.config.rope_theta, 4e5);
  EXPECT_EQ(checkpoint.sources.at("rope_theta").detail.english(), *options.config_path);
  options.config_path = folder.path() + "/missing.json";
  expect_in(open_error(model, options), {"missing.json"});
}

TEST(Checkpoint, FindsTheTokenizerNextToItOrInMiniMindsTree) {
  const TemporaryFolder folder;
  const std::string model = folder.write("out/full_sft_512.pth", "x");
  EXPECT_FALSE(find_tokenizer(model));
  const std::string in_tree = folder.write("model/tokenizer.json", "{}");
  EXPECT_EQ(find_tokenizer(model), in_tree);
  EXPECT_EQ(find_tokenizer(folder.path() + "/out"), in_tree);
  EXPECT_EQ(find_tokenizer(folder.path() + "/out/"), in_tree);
  const std::string beside = folder.write("out/tokenizer.json", "{}");
  EXPECT_EQ(find_tokenizer(model), beside);
  EXPECT_EQ(find_tokenizer(folder.path() + "/out"), beside);
}

// A MiniMind tree with a checkpoint and code in the manner of MiniMind's.
struct Tree {
  explicit Tree(const std::string& code) {
    folder.write("model/model_minimind.py", code);
    std::filesystem::create_directory(folder.path() + "/out");
    checkpoint = folder.path() + "/out/full_sft.pth";
    std::filesystem::copy_file(load_golden("v3-dense").model_path, checkpoint);
  }

  TemporaryFolder folder;
  std::string checkpoint;
};

constexpr const char* code_of_v3 =
    "class MiniMindConfig:\n    def __init__(self, **kwargs):\n        self.rope_theta = 1e4\n"
    "        self.rms_norm_eps = 1e-5\nclass Attention:\n    q_norm = 1\n";

TEST(Checkpoint, SettingsOfItsTreesCodeAreItsOwn) {
  const Tree tree(code_of_v3);
  const Checkpoint checkpoint = open_checkpoint(tree.checkpoint, {});
  EXPECT_EQ(checkpoint.config.rope_theta, 1e4);
  EXPECT_EQ(checkpoint.config.rms_norm_eps, 1e-5);
  EXPECT_EQ(checkpoint.sources.at("rope_theta").detail.english(), tree.folder.path() + "/model/model_minimind.py:3");
  EXPECT_EQ(checkpoint.sources.at("hidden_act").kind, ConfigSource::Kind::assumed);
  EXPECT_EQ(checkpoint.code_edited.size(), 1u);
}

TEST(Checkpoint, AConfigNextToAPthComesBeforeTheTreesCode) {
  const Tree tree(code_of_v3);
  const std::string config = tree.folder.write("out/config.json", R"({"rope_theta": 5000})");
  const Checkpoint checkpoint = open_checkpoint(tree.checkpoint, {});
  EXPECT_EQ(checkpoint.config.rope_theta, 5000);
  EXPECT_EQ(checkpoint.sources.at("rope_theta").detail.english(), config);
  EXPECT_EQ(checkpoint.config.rms_norm_eps, 1e-5) << "from the code: the config does not say it";
  tree.folder.write("out/config.json", R"({"learning_rate": 1})");
  EXPECT_EQ(open_checkpoint(tree.checkpoint, {}).config.rope_theta, 1e4) << "a config of something else";
}

TEST(Checkpoint, ItsTrainersArgumentsComeBeforeTheDefaultsOfTheCode) {
  const Tree tree(
      std::string(code_of_v3).replace(std::string(code_of_v3).find("1e4"), 3, "kwargs.get('rope_theta', 1e4)"));
  tree.folder.write("trainer/train_pretrain.py", "config = MiniMindConfig(rope_theta=7)\n");
  EXPECT_EQ(open_checkpoint(tree.checkpoint, {}).config.rope_theta, 1e4) << "another trainer";
  const std::string trainer =
      tree.folder.write("trainer/train_full_sft.py", "config = MiniMindConfig(rope_theta=5e3)\n");
  const Checkpoint checkpoint = open_checkpoint(tree.checkpoint, {});
  EXPECT_EQ(checkpoint.config.rope_theta, 5e3);
  EXPECT_EQ(checkpoint.sources.at("rope_theta").detail.english(), trainer + ":1");
}

TEST(Checkpoint, CodeOfAnotherGenerationSaysNothing) {
  const Tree tree("class MiniMindConfig:\n    rope_theta = 7\n");
  EXPECT_EQ(open_checkpoint(tree.checkpoint, {}).config.rope_theta, 1e6) << "the code is of v2";
}

TEST(Checkpoint, TheFirstGenerationsHaveTheirCodeInTwoFiles) {
  const TemporaryFolder folder;
  const std::string model = folder.write("out/pretrain.pth", safetensors_bytes(small_v1().tensors()));
  folder.write("model/LMConfig.py", "class LMConfig:\n    n_heads = 16\n    n_kv_heads = 8\n    norm_eps = 1e-3\n");
  EXPECT_EQ(open_checkpoint(model, {}).config.rms_norm_eps, 1e-3);
  EXPECT_EQ(open_checkpoint(model, {}).config.rope_theta, 1e4);
  const std::string code = folder.write("model/model.py", "def precompute_pos_cis(dim, end, theta=2e4): pass\n");
  const Checkpoint checkpoint = open_checkpoint(model, {});
  EXPECT_EQ(checkpoint.config.rope_theta, 2e4);
  EXPECT_EQ(checkpoint.sources.at("rope_theta").detail.english(), code + ":1");
}

TEST(Checkpoint, NotesNameWhatIsNotReadOfItAndOfItsCode) {
  Checkpoint checkpoint;
  checkpoint.other_modalities = {{"vision_encoder", 2}};
  checkpoint.code_not_read = {"rope_theta (m.py:3)"};
  checkpoint.code_edited = {"Attention (m.py:8)", "RMSNorm (m.py:5)"};
  std::vector<std::string> notes;
  for (const Fact& note : checkpoint_notes(checkpoint)) notes.push_back(note.english());
  EXPECT_EQ(notes, (std::vector<std::string>{
                       "text only: the 2 tensors of vision_encoder are not read",
                       "rope_theta (m.py:3) in MiniMind's code is not a literal and is not read",
                       "equations edited in MiniMind's code: Attention (m.py:8), RMSNorm (m.py:5); those of its own "
                       "versions are computed"}));
}

TEST(Checkpoint, PathsAreShownShortly) {
  const TemporaryFolder folder;
  folder.write("out/a", "");
  EXPECT_EQ(shorter("/.." + folder.path() + "/./out/..//out/a"), folder.path() + "/out/a");
  EXPECT_EQ(shorter("./../../."), "../..");
  EXPECT_EQ(shorter(folder.path() + "/gone/../out"), folder.path() + "/gone/../out") << "not the same file";
}

TEST(Checkpoint, ADriveOfWindowsIsNotARelativeFolder) {
  const auto folders = surroundings("C:/tree/out/a.pth").front().model_folders;
  EXPECT_NE(std::ranges::find(folders, "C:/tree/model"), folders.end());
}

TEST(Checkpoint, CodeThatDisagreesWithTheTensorsIsAnErrorThatNamesBoth) {
  const Tree tree(
      std::string(code_of_v3)
          .insert(std::string(code_of_v3).find("class Attention"), "        self.num_key_value_heads = 5\n"));
  const std::string error = error_of([&] { open_checkpoint(tree.checkpoint, {}); });
  EXPECT_NE(error.find("num_key_value_heads is 5 in " + tree.folder.path() + "/model/model_minimind.py:5"),
            std::string::npos)
      << error;
}

TEST(FindTokenizer, InAGgufThatHasOne) {
  constexpr std::uint32_t string = 8, u32 = 4;
  const auto found_in = [](const GgufBytes& gguf) {
    const TemporaryFolder folder;
    const std::string tokenizer = folder.write("tokenizer.json", "{}");
    const std::string model = folder.write("model.gguf", gguf.bytes());
    const auto found = find_tokenizer(model);
    return found == model ? "own" : found == tokenizer ? "beside" : "none";
  };
  EXPECT_STREQ(found_in(GgufBytes().key("tokenizer.ggml.model", string, gguf_text("gpt2"))), "own");
  EXPECT_STREQ(found_in(GgufBytes().key("tokenizer.ggml.model", u32, "1234")), "own") << "its error is reported";
  for (const char* none : {"none", "no_vocab"}) {
    EXPECT_STREQ(found_in(GgufBytes().key("tokenizer.ggml.model", string, gguf_text(none))), "beside") << none;
  }
  EXPECT_STREQ(found_in(GgufBytes()), "beside");
  const TemporaryFile empty;
  EXPECT_FALSE(is_gguf(empty.path()));
}

TEST(FindTokenizer, InTheTreesOfTheFirstGenerations) {
  const TemporaryFolder folder;
  const std::string in_out = folder.write("out/pretrain_512.pth", "x"), in_tree = folder.write("pretrain_512.pth", "x");
  EXPECT_FALSE(find_tokenizer(in_out));
  const std::string first = folder.write("model/minimind_tokenizer/tokenizer.json", "{}");
  EXPECT_EQ(find_tokenizer(in_out), first);
  EXPECT_EQ(find_tokenizer(in_tree), first);
  const std::string later = folder.write("model/tokenizer.json", "{}");
  EXPECT_EQ(find_tokenizer(in_out), later);
  EXPECT_EQ(find_tokenizer(in_tree), later);
}

TEST(FindTokenizer, FromInsideTheTree) {
  const TemporaryFolder folder;
  folder.write("out/pretrain_512.pth", "x");
  folder.write("model/minimind_tokenizer/tokenizer.json", "{}");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  EXPECT_EQ(find_tokenizer("out/pretrain_512.pth"), "model/minimind_tokenizer/tokenizer.json");
  std::filesystem::current_path(folder.path() + "/out");
  EXPECT_EQ(find_tokenizer("pretrain_512.pth"), "../model/minimind_tokenizer/tokenizer.json");
  std::filesystem::current_path(before);
}

TEST(FindTokenizer, ThroughLinks) {
  const TemporaryFolder folder, elsewhere;
  const auto same_file = [](const std::optional<std::string>& found, const std::string& expected) {
    return found && std::filesystem::equivalent(*found, expected);
  };
  const std::string tokenizer = folder.write("model/tokenizer.json", "{}");
  folder.write("out/a.pth", "x");
  std::filesystem::create_symlink(folder.path() + "/out/a.pth", elsewhere.path() + "/a.pth");
  EXPECT_TRUE(same_file(find_tokenizer(elsewhere.path() + "/a.pth"), tokenizer)) << "a link to the checkpoint";
  std::filesystem::create_directory(elsewhere.path() + "/deep");
  std::filesystem::create_symlink(folder.path() + "/out", elsewhere.path() + "/deep/out");
  EXPECT_TRUE(same_file(find_tokenizer(elsewhere.path() + "/deep/out/a.pth"), tokenizer)) << "a link to its folder";
  const TemporaryFolder disk;
  disk.write("big/b.pth", "x");
  std::filesystem::create_symlink(disk.path() + "/big", folder.path() + "/large");
  EXPECT_TRUE(same_file(find_tokenizer(folder.path() + "/large/b.pth"), tokenizer)) << "out/ is a link out of the tree";
}

}  // namespace
}  // namespace minimind
