#include "weights/huggingface/folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/stored.h"
#include "tests/support/temporary_folder.h"
#include "weights/io/text_file.h"

namespace minimind {
namespace {

using Json = nlohmann::json;

StoredTensors tensor_called(const std::string& name, float value = 1) {
  return {{name, f32_tensor({1}, {value})}};
}

std::string index_of(const Json& weight_map) {
  return Json{{"metadata", {{"total_size", 8}}}, {"weight_map", weight_map}}.dump();
}

// Two shards, a and b.
void write_shards(const TemporaryFolder& folder, const Json& weight_map) {
  folder.write("1.safetensors", safetensors_bytes(tensor_called("a", 1)));
  folder.write("2.safetensors", safetensors_bytes(tensor_called("b", 2)));
  folder.write("model.safetensors.index.json", index_of(weight_map));
}

std::string folder_error(const TemporaryFolder& folder) {
  const std::string error = error_of([&] { read_hf_folder(folder.path()); });
  EXPECT_TRUE(error.starts_with(folder.path())) << error;
  return error;
}

void expect_in(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(HfFolder, ReadsASafetensorsFile) {
  const TemporaryFolder folder;
  folder.write("model.safetensors", safetensors_bytes(tensor_called("a")));
  const HfFolder read = read_hf_folder(folder.path());
  EXPECT_EQ(read.format, "safetensors");
  EXPECT_EQ(floats_of(read.tensors.at("a")), std::vector<float>{1});
}

TEST(HfFolder, ReadsAPytorchModelBin) {
  const TemporaryFolder folder;
  folder.write("pytorch_model.bin", pth_bytes(tensor_called("a", 3)));
  const HfFolder read = read_hf_folder(folder.path() + "/");
  EXPECT_EQ(read.format, "torch.save");
  EXPECT_EQ(floats_of(read.tensors.at("a")), std::vector<float>{3});
}

TEST(HfFolder, PrefersSafetensorsWholeOrInShards) {
  const TemporaryFolder folder;
  folder.write("pytorch_model.bin", pth_bytes(tensor_called("bin")));
  write_shards(folder, {{"a", "1.safetensors"}, {"b", "2.safetensors"}});
  EXPECT_EQ(read_hf_folder(folder.path()).format, "safetensors, 2 shards");
  folder.write("model.safetensors", safetensors_bytes(tensor_called("whole")));
  EXPECT_TRUE(read_hf_folder(folder.path()).tensors.contains("whole"));
}

TEST(HfFolder, ReadsShards) {
  const TemporaryFolder folder;
  write_shards(folder, {{"a", "1.safetensors"}, {"b", "2.safetensors"}});
  const HfFolder read = read_hf_folder(folder.path());
  ASSERT_EQ(read.tensors.size(), 2u);
  EXPECT_EQ(floats_of(read.tensors.at("a")), std::vector<float>{1});
  EXPECT_EQ(floats_of(read.tensors.at("b")), std::vector<float>{2});
}

TEST(HfFolder, ReadsShardsOfTorchSave) {
  const TemporaryFolder folder;
  folder.write("1.bin", pth_bytes(tensor_called("a")));
  folder.write("pytorch_model.bin.index.json", index_of({{"a", "1.bin"}}));
  EXPECT_EQ(read_hf_folder(folder.path()).format, "torch.save, 1 shards");
}

TEST(HfFolder, AFolderWithoutWeightsNamesTheCheckpointsInIt) {
  const TemporaryFolder folder;
  expect_in(folder_error(folder), {"without model.safetensors or pytorch_model.bin"});
  folder.write("pretrain_512.pth", "x");
  folder.write("full_sft_512.pth", "x");
  folder.write("notes.txt", "x");
  const std::string error = folder_error(folder);
  expect_in(error, {"full_sft_512.pth, pretrain_512.pth"});
  EXPECT_EQ(error.find("notes.txt"), std::string::npos);
  for (int i = 0; i < 9; ++i) folder.write("a" + std::to_string(i) + ".pth", "x");
  expect_in(folder_error(folder), {"a0.pth, a1.pth, a2.pth, a3.pth, a4.pth, ..."});
}

TEST(HfFolder, AMissingFolderIsNamed) {
  expect_in(error_of([] { read_hf_folder("/nowhere/at/all"); }), {"/nowhere/at/all"});
}

TEST(HfFolder, AMissingShardIsNamed) {
  const TemporaryFolder folder;
  write_shards(folder, {{"a", "1.safetensors"}, {"b", "3.safetensors"}});
  expect_in(folder_error(folder), {"3.safetensors", "No such file"});
}

TEST(HfFolder, ATensorThatIsListedButNotInItsShardIsNamed) {
  const TemporaryFolder folder;
  write_shards(folder, {{"a", "1.safetensors"}, {"b", "2.safetensors"}, {"c", "2.safetensors"}});
  expect_in(folder_error(folder), {"index.json", "'c'", "2.safetensors"});
}

TEST(HfFolder, ATensorThatIsNotListedOrListedElsewhereIsNamed) {
  const TemporaryFolder folder;
  write_shards(folder, {{"a", "1.safetensors"}, {"c", "2.safetensors"}});
  expect_in(folder_error(folder), {"'b'", "2.safetensors"});
  write_shards(folder, {{"a", "2.safetensors"}, {"b", "1.safetensors"}});
  expect_in(folder_error(folder), {"'a'", "1.safetensors"});
}

TEST(HfFolder, AShardMustBeAPlainFileName) {
  for (const Json& shard : {Json("../1.safetensors"), Json("/etc/passwd"), Json("sub/1.safetensors"), Json(".."),
                            Json("."), Json(""), Json(3), Json(nullptr), Json(std::string("1.safetensors\0", 14))}) {
    const TemporaryFolder folder;
    write_shards(folder, {{"a", shard}});
    expect_in(folder_error(folder), {"weight_map.a is ", "expected "});
  }
}

TEST(HfFolder, AnInvalidIndexIsRejected) {
  for (const char* index : {"{", "[]", "{}", R"({"weight_map": []})", R"({"weight_map": null})", "null"}) {
    const TemporaryFolder folder;
    folder.write("model.safetensors.index.json", index);
    expect_in(folder_error(folder), {"model.safetensors.index.json: ", "JSON"});
  }
}

TEST(HfFolder, ADeeplyNestedIndexIsRejectedWithoutOverflowingTheStack) {
  const TemporaryFolder folder;
  constexpr std::size_t depth = 1'000'000;
  folder.write("model.safetensors.index.json",
               R"({"weight_map": {"a": )" + std::string(depth, '[') + std::string(depth, ']') + "}}");
  expect_in(folder_error(folder), {"model.safetensors.index.json"});
}

TEST(HfFolder, CorruptWeightsAreNamed) {
  const TemporaryFolder folder;
  const std::string path = folder.write("model.safetensors", "neither");
  EXPECT_EQ(folder_error(folder), path +
                                      ": is neither safetensors nor a torch.save file and starts with 'neither'; "
                                      "copy or download it again");
}

TEST(FolderConfig, IsNulloptWithoutAConfigJson) {
  const TemporaryFolder folder;
  folder.write("generation_config.json", R"({"eos_token_id": 5})");
  EXPECT_FALSE(read_folder_config(folder.path()));
}

TEST(FolderConfig, IsReadFromConfigJsonWhichItNames) {
  const TemporaryFolder folder;
  const std::string path = folder.write("config.json", R"({"vocab_size": 12})");
  const auto config = read_folder_config(folder.path());
  ASSERT_TRUE(config);
  EXPECT_EQ(config->vocab_size, 12u);
  EXPECT_EQ(config->source, path);
  folder.write("config.json", R"({"vocab_size": "x"})");
  EXPECT_TRUE(error_of([&] { read_folder_config(folder.path()); }).starts_with(path));
}

TEST(FolderConfig, AddsTheEndOfTextOfTheGenerationConfig) {
  const TemporaryFolder folder;
  folder.write("config.json", "{}");
  const std::string generation = folder.write("generation_config.json", R"({"eos_token_id": [5, 6]})");
  EXPECT_EQ(read_folder_config(folder.path())->eos_token_id, (std::vector<std::int32_t>{5, 6}));
  folder.write("config.json", R"({"eos_token_id": 7})");
  EXPECT_EQ(read_folder_config(folder.path())->eos_token_id, (std::vector<std::int32_t>{7, 5, 6}));
  folder.write("config.json", "{}");
  folder.write("generation_config.json", "[");
  EXPECT_TRUE(error_of([&] { read_folder_config(folder.path()); }).starts_with(generation));
}

TEST(TextFile, IsReadWhole) {
  const TemporaryFile file(std::string("a\r\n\0b", 5));
  EXPECT_EQ(read_text_file(file.path()), std::string("a\r\n\0b", 5));
}

TEST(TextFile, AFolderOrAMissingFileIsRejected) {
  const TemporaryFolder folder;
  expect_in(error_of([&] { read_text_file(folder.path()); }), {folder.path(), "directory"});
  expect_in(error_of([&] { read_text_file(folder.path() + "/none"); }), {folder.path() + "/none", "No such file"});
}

TEST(TextFile, OverSixtyFourMebibytesIsRejected) {
  const TemporaryFile file("x");
  std::filesystem::resize_file(file.path(), (std::size_t{64} << 20) + 1);
  expect_in(error_of([&] { read_text_file(file.path()); }), {file.path(), "67108864"});
}

TEST(HfFolder, AnIndexHasLimits) {
  const auto error_of_index = [](std::size_t tensors, const std::string& shard) {
    nlohmann::json index;
    for (std::size_t i = 0; i < tensors; ++i) index["weight_map"][std::to_string(i)] = shard;
    const TemporaryFolder folder;
    folder.write("model.safetensors.index.json", index.dump());
    return error_of([&] { read_hf_folder(folder.path()); });
  };
  EXPECT_NE(error_of_index(65'537, "a").find("lists 65537 tensors, expected at most 65536"), std::string::npos);
  EXPECT_NE(error_of_index(1, std::string(256, 'a')).find("expected the name of a file"), std::string::npos);
}

}  // namespace
}  // namespace minimind
