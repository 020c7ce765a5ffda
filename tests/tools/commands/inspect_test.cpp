#include <fmt/core.h>
#include <sys/resource.h>

#include <nlohmann/json.hpp>

#include "tests/support/cli.h"
#include "weights/checkpoint/open_checkpoint.h"
#include "weights/checkpoint/weights_hash.h"
#include "weights/export/gguf.h"
#include "weights/gguf/writer.h"
#include "weights/io/output_file.h"

namespace minimind {
namespace {

using Inspect = Cli;

TEST_F(Inspect, ShowsTheHashOfTheWeightsInBothForms) {
  const GoldenCase golden = load_golden("v3-moe");
  const std::string digest = weights_sha256(open_checkpoint(golden.model_path, {}).tensors);
  EXPECT_EQ(nlohmann::json::parse(run("inspect --json -m " + golden.model_path).out)["sha256"], digest);
  EXPECT_NE(run("inspect -m " + golden.model_path).out.find(digest), std::string::npos);
}

TEST_F(Inspect, HashesTheWeightsWithTheMergedLora) {
  const GoldenCase golden = load_golden("v3-lora");
  EXPECT_NE(nlohmann::json::parse(run("inspect --json" + model_options(golden)).out)["sha256"],
            nlohmann::json::parse(run("inspect --json -m " + golden.model_path).out)["sha256"]);
}

TEST_F(Inspect, ListsEveryTensorWithItsTypeAndShape) {
  const GoldenCase golden = load_golden("v1-moe");
  const Checkpoint checkpoint = open_checkpoint(golden.model_path, {});
  const auto listed = nlohmann::json::parse(run("inspect --json -m " + golden.model_path).out)["tensors"];
  const std::string text = run("inspect --tensors -m " + golden.model_path).out;
  ASSERT_EQ(listed.size(), checkpoint.tensors.size());
  for (const auto& tensor : listed) {
    const StoredTensor& stored = checkpoint.tensors.at(tensor["name"]);
    EXPECT_EQ(tensor["shape"], stored.shape);
    EXPECT_EQ(tensor["type"], name_of(stored.dtype));
    const std::size_t at = text.find("  " + tensor["name"].get<std::string>() + " ");
    ASSERT_NE(at, std::string::npos) << tensor["name"];
    const std::string line = text.substr(at, text.find('\n', at) - at);
    EXPECT_TRUE(line.ends_with(shape_text(stored.shape))) << line;
  }
}

// A vector of 32-bit values counts, too.
TEST_F(Inspect, ShowsTheBitsPerWeightOfEachTensorAndOfAll) {
  ASSERT_EQ(run("convert -q " MINIMIND_SOURCE_DIR "/weights/demo/model.pth " + path("q.gguf") + " --type q4_k").status,
            0);
  const auto json = nlohmann::json::parse(run("inspect --json -m " + path("q.gguf")).out);
  double bits = 0, weights = 0;
  for (const auto& tensor : json["tensors"]) {
    const std::string type = tensor["type"];
    EXPECT_EQ(tensor["bits_per_weight"], type == "q4_k" ? 4.5 : type == "q5_0" ? 5.5 : 32) << tensor["name"] << type;
    double count = 1;
    for (const double size : tensor["shape"]) count *= size;
    bits += count * tensor["bits_per_weight"].get<double>();
    weights += count;
  }
  EXPECT_DOUBLE_EQ(json["bits_per_weight"], bits / weights);
  const std::string text = run("inspect -m " + path("q.gguf")).out;
  EXPECT_NE(text.find(fmt::format("{:.4g} bits per weight\n", bits / weights)), std::string::npos) << text;
  EXPECT_NE(text.find(" q4_k        4.5  ["), std::string::npos) << text;
  EXPECT_NE(text.find(" q5_0        5.5  ["), std::string::npos) << text;
}

TEST_F(Inspect, FoldsEqualLayersAndExperts) {
  const std::string text = run("inspect -m " + load_golden("v3-moe").model_path).out;
  const Checkpoint checkpoint = open_checkpoint(load_golden("v3-moe").model_path, {});
  const std::string layers = fmt::format("  model.layers.0-{}.", checkpoint.config.num_hidden_layers - 1);
  const std::string experts = fmt::format("mlp.experts.0-{}.up_proj.weight ", checkpoint.config.num_experts - 1);
  EXPECT_NE(text.find(layers + "self_attn.q_proj.weight "), std::string::npos) << text;
  EXPECT_NE(text.find(layers + experts), std::string::npos) << text;
  EXPECT_EQ(text.find("layers.1."), std::string::npos) << text;
  EXPECT_EQ(run("inspect --json --tensors").status, 2);
}

double cpu_seconds_of_children() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec) + 1e-6 * static_cast<double>(usage.ru_utime.tv_usec);
}

// A search for each of many long keys among those before it would take many times as long.
TEST_F(Inspect, ShowsManyKeysOfMetadataInLinearTime) {
  constexpr std::size_t keys = 4000, size = 15'000;
  const Checkpoint checkpoint = open_checkpoint(load_golden("v3-dense").model_path, {});
  GgufExport model = export_gguf(checkpoint, {}, "test", 1);
  for (std::size_t i = 0; i < keys; ++i) model.metadata.set_bool(fmt::format("x.{:0{}}", i, size), true);
  OutputFile file(path("many.gguf"));
  write_gguf(file, model.metadata, model.tensors, 1);
  file.commit();
  const double before = cpu_seconds_of_children();
  ASSERT_EQ(run("inspect -m " + path("many.gguf")).status, 0);
  const double as_text = cpu_seconds_of_children() - before;
  const Outcome outcome = run("inspect --json -m " + path("many.gguf"));
  const double as_json = cpu_seconds_of_children() - before - as_text;
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_GT(nlohmann::json::parse(outcome.out)["metadata"].size(), keys);
  EXPECT_LT(as_json, 5 * as_text);
}

TEST_F(Inspect, OmitsMetadataThatAFileDoesNotHave) {
  const std::string model = "-m " + load_golden("v3-dense").model_path;
  EXPECT_EQ(nlohmann::json::parse(run("inspect --json " + model).out)["metadata"], nlohmann::json::object());
  EXPECT_EQ(run("inspect " + model).out.find("metadata"), std::string::npos);
}

}  // namespace
}  // namespace minimind
