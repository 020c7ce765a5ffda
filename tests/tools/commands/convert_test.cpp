#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/support/cli.h"
#include "tests/support/golden_tokenizer.h"
#include "tests/support/running.h"
#include "tests/support/stored.h"
#include "weights/checkpoint/open_checkpoint.h"

namespace minimind {
namespace {

namespace fs = std::filesystem;

const std::string demo_model = MINIMIND_SOURCE_DIR "/weights/demo/model.pth";

class Convert : public Cli {
 protected:
  Outcome convert(const std::string& in, const std::string& out, const std::string& options = "") const {
    return run("convert " + in + " " + out + " " + options);
  }

  std::string greedy(const std::string& model) const {
    return run("generate --greedy -n 24 -q --tokens 1,300,400,500 -m " + model).out;
  }

  // Returns the files in the folder of this test, except the captured output.
  std::vector<std::string> left_behind() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(path(""))) {
      const std::string name = entry.path().filename().string();
      if (name != "out" && name != "err") names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
  }
};

TEST_F(Convert, GivesTheSameTextInEveryFormat) {
  const std::string expected = greedy(demo_model);
  ASSERT_FALSE(expected.empty());
  for (const char* out : {"model.gguf", "model.pth", "folder/"}) {
    const Outcome outcome = convert(demo_model, path(out));
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    const std::string tokenizer =
        std::string(out) == "model.pth" ? " --tokenizer " MINIMIND_SOURCE_DIR "/weights/demo" : "";
    EXPECT_EQ(greedy(path(out) + tokenizer), expected) << out;
  }
}

TEST_F(Convert, ReportsTheOutputUnlessQuiet) {
  const Outcome outcome = convert(demo_model, path("model.gguf"), "--type q8_0");
  EXPECT_NE(outcome.err.find("model.gguf: GGUF, architecture qwen3"), std::string::npos) << outcome.err;
  EXPECT_EQ(convert(demo_model, path("other.gguf"), "-q").err, "");
}

TEST_F(Convert, KeepsTheHashOfTheWeights) {
  ASSERT_EQ(convert(demo_model, path("a.gguf")).status, 0);
  ASSERT_EQ(convert(path("a.gguf"), path("folder/")).status, 0);
  ASSERT_EQ(convert(path("folder"), path("b.pth")).status, 0);
  const auto hash = [&](const std::string& model) {
    return nlohmann::json::parse(run("inspect --json -m " + model).out).at("sha256").get<std::string>();
  };
  const std::string expected = hash(demo_model);
  for (const char* name : {"a.gguf", "folder", "b.pth"}) EXPECT_EQ(hash(path(name)), expected) << name;
}

TEST_F(Convert, WritesMetadataThatInspectShows) {
  ASSERT_EQ(convert(demo_model, path("a.gguf")).status, 0);
  const auto metadata = nlohmann::json::parse(run("inspect --json -m " + path("a.gguf")).out).at("metadata");
  EXPECT_EQ(metadata.at("general.architecture"), "qwen3");
  EXPECT_EQ(metadata.at("qwen3.block_count"), 6);
  EXPECT_EQ(metadata.at("qwen3.attention.layer_norm_rms_epsilon"), 1e-6);
  EXPECT_EQ(metadata.at("tokenizer.ggml.tokens"), "6400 of string");
  EXPECT_NE(run("inspect -m " + path("a.gguf")).out.find("tokenizer.ggml.pre  "), std::string::npos);
}

TEST_F(Convert, KeepsTheTokenizerThroughAGguf) {
  ASSERT_EQ(convert(demo_model, path("a.gguf")).status, 0);
  ASSERT_EQ(convert(path("a.gguf"), path("folder/")).status, 0);
  const std::string text = "tokenize -p '写一首五言绝句<|im_end|> 12 x'";
  const std::string expected = run(text + demo).out;
  ASSERT_FALSE(expected.empty());
  EXPECT_EQ(run(text + " -m " + path("a.gguf")).out, expected);
  EXPECT_EQ(run(text + " -m " + path("folder")).out, expected);
}

TEST_F(Convert, ReplacesAFileOnlyWithForce) {
  std::ofstream(path("model.gguf")) << "precious";
  const Outcome rejected = convert(demo_model, path("model.gguf"));
  EXPECT_EQ(rejected.status, 1);
  EXPECT_NE(rejected.err.find("--force"), std::string::npos) << rejected.err;
  EXPECT_EQ(read_whole_file(path("model.gguf")), "precious");
  EXPECT_EQ(convert(demo_model, path("model.gguf"), "--force").status, 0);
  EXPECT_NE(read_whole_file(path("model.gguf")), "precious");
}

TEST_F(Convert, NeverOverwritesItsInput) {
  fs::copy_file(demo_model, path("model.pth"));
  const std::string before = read_whole_file(path("model.pth"));
  EXPECT_EQ(convert(path("model.pth"), path("model.pth"), "--force").status, 2);
  fs::create_symlink(path("model.pth"), path("link.pth"));
  EXPECT_EQ(convert(path("model.pth"), path("link.pth"), "--force").status, 2);
  ASSERT_EQ(convert(path("model.pth"), path("folder/")).status, 0);
  EXPECT_EQ(convert(path("folder"), path("folder/"), "--force").status, 2);
  EXPECT_EQ(convert(path("folder/model.safetensors"), path("folder/"), "--force").status, 2);
  fs::create_directory(path("other"));
  fs::create_symlink(path("folder/model.safetensors"), path("other/model.safetensors"));
  EXPECT_EQ(convert(path("folder"), path("other/"), "--force").status, 2);
  EXPECT_EQ(read_whole_file(path("model.pth")), before);
}

TEST_F(Convert, CopiesNoFileThatALinkOfTheModelNames) {
  ASSERT_EQ(convert(demo_model, path("model/")).status, 0);
  std::ofstream(path("private")) << "a secret";
  fs::create_symlink(path("private"), path("model/special_tokens_map.json"));
  const Outcome outcome = convert(path("model"), path("copy/"));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("model/special_tokens_map.json: is a link to " + fs::canonical(path("private")).string()),
            std::string::npos)
      << outcome.err;
  EXPECT_FALSE(fs::exists(path("copy")));
}

TEST_F(Convert, NeverOverwritesALora) {
  const GoldenCase golden = load_golden("v3-lora");
  fs::copy_file(*golden.lora_path, path("lora.pth"));
  const std::string before = read_whole_file(path("lora.pth"));
  EXPECT_EQ(convert(golden.model_path, path("lora.pth"), "--force --lora " + path("lora.pth")).status, 2);
  EXPECT_EQ(read_whole_file(path("lora.pth")), before);
}

TEST_F(Convert, ReportsSettingsThatAPthLoses) {
  const GoldenCase golden = load_golden("v3-yarn");
  const Outcome outcome = convert(golden.model_path, path("model.pth"), "--rope-scaling yarn");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.err.find("not stored in a .pth"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("rope_scaling is {"), std::string::npos) << outcome.err;
  EXPECT_EQ(convert(demo_model, path("plain.pth")).err.find("not stored"), std::string::npos);
}

TEST_F(Convert, KeepsTheConfigsEndOfText) {
  fs::copy(load_golden("hf-llama").folder, path("in"));
  auto config = nlohmann::json::parse(read_whole_file(path("in/config.json")));
  config["eos_token_id"] = 5;
  std::ofstream(path("in/config.json")) << config;
  ASSERT_EQ(convert(path("in"), path("model.gguf")).status, 0);
  EXPECT_EQ(nlohmann::json::parse(run("inspect --json -m " + path("model.gguf")).out)["config"]["eos_token_id"],
            nlohmann::json({5}));
}

TEST_F(Convert, IgnoresTheCaseOfSuffixes) {
  ASSERT_EQ(convert(demo_model, path("MODEL.GGUF")).status, 0);
  EXPECT_EQ(read_whole_file(path("MODEL.GGUF")).substr(0, 4), "GGUF");
}

TEST_F(Convert, RejectsANameWithoutAKnownSuffix) {
  for (const char* name : {"model.ggfu", "model.safetensors", "model.bin", "minimind-hf", "MiniMind2-v1.5", "model."}) {
    const Outcome outcome = convert(demo_model, path(name));
    EXPECT_EQ(outcome.status, 2) << name;
    EXPECT_NE(outcome.err.find(std::string("type ") + path(name) + "/"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("expected .gguf or .pth"), std::string::npos) << outcome.err;
  }
  EXPECT_TRUE(left_behind().empty());
}

TEST_F(Convert, WritesAFolderIfTheNameEndsWithASlash) {
  for (const char* name : {"MiniMind2-v1.5/", "model.gguf//", "plain/"}) {
    EXPECT_EQ(convert(demo_model, path(name)).status, 0) << name;
    EXPECT_TRUE(fs::exists(path(name) + "/config.json")) << name;
  }
  fs::create_directories(path("there.v2"));
  EXPECT_EQ(convert(demo_model, path("there.v2")).status, 0);
  EXPECT_TRUE(fs::exists(path("there.v2/config.json")));
  const Outcome outcome = convert(demo_model, path("model.gguf"));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("is a folder, expected a file"), std::string::npos) << outcome.err;
}

TEST_F(Convert, NeverReplacesAFileByAFolder) {
  std::ofstream(path("model")) << "precious";
  const Outcome outcome = convert(demo_model, path("model/"), "--force");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("is a file"), std::string::npos) << outcome.err;
  EXPECT_EQ(read_whole_file(path("model")), "precious");
}

TEST_F(Convert, ReportsTheSizeOfTheNewFilesOnly) {
  fs::create_directories(path("folder"));
  std::ofstream(path("folder/notes")) << std::string(50'000'000, 'x');
  const Outcome forced = convert(demo_model, path("folder/"), "--force"), fresh = convert(demo_model, path("other/"));
  const auto size = [](const std::string& text) {
    const std::size_t end = text.find(" MB, in"), begin = text.rfind(' ', end - 1);
    return text.substr(begin, end - begin);
  };
  EXPECT_EQ(forced.status, 0) << forced.err;
  EXPECT_EQ(size(forced.err), size(fresh.err)) << forced.err;
}

TEST_F(Convert, RejectsAFolderWithPartsOfAnotherModel) {
  fs::create_directories(path("folder"));
  std::ofstream(path("folder/pytorch_model.bin")) << "old";
  EXPECT_EQ(convert(demo_model, path("folder/")).status, 1);
  const Outcome forced = convert(demo_model, path("folder/"), "--force");
  EXPECT_EQ(forced.status, 1);
  EXPECT_NE(forced.err.find("pytorch_model.bin"), std::string::npos) << forced.err;
  EXPECT_EQ(read_whole_file(path("folder/pytorch_model.bin")), "old");
}

TEST_F(Convert, LeavesNoPartialFileAfterASignal) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    Running running("convert " + demo_model + " " + path("model.gguf") + " --type iq4_nl", path("out"), path("err"));
    running.reach([&] { return !left_behind().empty(); });
    const int status = running.interrupt(signal).first;
    const std::vector<std::string> left = left_behind();
    if (status == 0) {  // the program finished first
      EXPECT_EQ(left, std::vector<std::string>{"model.gguf"}) << signal;
      fs::remove(path("model.gguf"));
    } else {
      EXPECT_TRUE(left.empty()) << signal << ": " << left.front();
    }
  }
}

TEST_F(Convert, RemovesWhatAKilledConversionLeftInAFolder) {
  const pid_t killed = ::fork();
  if (killed == 0) {
    fs::create_directories(path("folder"));
    std::ofstream(path("folder/.model.safetensors." + std::to_string(::getpid()) + "-0.part"));
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(killed, nullptr, 0);
  ASSERT_EQ(std::distance(fs::directory_iterator(path("folder")), fs::directory_iterator()), 1);
  const Outcome outcome = convert(demo_model, path("folder/"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  for (const auto& entry : fs::directory_iterator(path("folder"))) EXPECT_NE(entry.path().extension(), ".part");
}

TEST_F(Convert, RejectsNamesThatAreSurelyMistakes) {
  for (const char* out : {"-", "\"\"", ".gguf"}) EXPECT_EQ(convert(demo_model, out).status, 2) << out;
  EXPECT_EQ(convert(demo_model, path("model.gguf"), "--type \"\"").status, 2);
}

TEST_F(Convert, LeavesNoPartialFileOnAFullDisk) {
  const Outcome outcome = run("convert " + demo_model + " " + path("model.gguf"), "ulimit -f 100;");
  EXPECT_NE(outcome.status, 0);
  EXPECT_TRUE(left_behind().empty()) << left_behind().front();
}

TEST_F(Convert, LeavesNothingIfTheFolderCannotBeCreated) {
  EXPECT_EQ(convert(demo_model, path("no/such/model.gguf")).status, 1);
  EXPECT_EQ(convert(demo_model, path("no/such/folder/")).status, 1);
  EXPECT_TRUE(left_behind().empty());
}

TEST_F(Convert, RejectsTypesThatTheFormatDoesNotHave) {
  const Outcome folder = convert(demo_model, path("folder/"), "--type q8_0");
  EXPECT_EQ(folder.status, 2);
  EXPECT_NE(folder.err.find("only a .gguf"), std::string::npos) << folder.err;
  EXPECT_EQ(convert(demo_model, path("model.gguf"), "--type q3_k").status, 2);
  EXPECT_EQ(convert(demo_model, path("model.safetensors")).status, 2);
  EXPECT_TRUE(left_behind().empty());
}

TEST_F(Convert, MergesLora) {
  const GoldenCase golden = load_golden("v3-lora");
  ASSERT_EQ(convert(golden.model_path, path("merged.gguf"), "--lora " + *golden.lora_path).status, 0);
  const Outcome compared = run("compare -m " + path("merged.gguf") + " --tokens " + joined(golden.tokens) +
                               " --reference " + golden.folder + "/logits.npy");
  EXPECT_EQ(compared.status, 0) << compared.out;
}

TEST_F(Convert, ReportsFilesThatOnlyMinimindReads) {
  const GoldenCase golden = load_golden("v3-glu-relu");
  const Outcome outcome = convert(golden.model_path, path("model.gguf"));
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.err.find("only minimind can read this file"), std::string::npos) << outcome.err;
}

TEST_F(Convert, NamesTheTensorsKeptAsAnotherType) {
  const GoldenCase golden = load_golden("v3-odd");
  const Outcome outcome = convert(golden.model_path, path("model.gguf"), "--type q4_0");
  EXPECT_NE(outcome.err.find("blk.0.ffn_down.weight as f16: its 53 columns are not a multiple of 32"),
            std::string::npos)
      << outcome.err;
}

// 416 columns are 13 blocks of 32.
TEST_F(Convert, WritesKQuantsAndNamesTheTensorsOfOtherWidths) {
  const struct { const char *type, *other; } types[] = {{"q4_k", "q5_0"}, {"q5_k", "q5_1"}, {"q6_k", "q8_0"}};
  for (const auto& [type, other] : types) {
    const std::string out = path(std::string(type) + ".gguf");
    const Outcome outcome = convert(MINIMIND_SOURCE_DIR "/weights/demo/model.pth", out, std::string("--type ") + type);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(
        outcome.err.find(fmt::format("blk.0.ffn_down.weight as {}: its 416 columns are not a multiple of 256", other)),
        std::string::npos)
        << outcome.err;
    const StoredTensors tensors = open_checkpoint(out, {}).tensors;
    EXPECT_EQ(name_of(tensors.at("model.layers.0.mlp.up_proj.weight").dtype), type);
    EXPECT_EQ(name_of(tensors.at("model.layers.0.mlp.down_proj.weight").dtype), other);
  }
}

TEST_F(Convert, ReportsAMissingTokenizer) {
  const GoldenCase golden = load_golden("v3-dense");
  const Outcome outcome = convert(golden.model_path, path("model.gguf"));
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.err.find("no tokenizer"), std::string::npos) << outcome.err;
}

TEST_F(Convert, NewFilesHaveTheModeOfTheUmask) {
  ASSERT_EQ(run("convert " + demo_model + " " + path("model.gguf"), "umask 027;").status, 0);
  struct stat status {};
  ASSERT_EQ(stat(path("model.gguf").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
}

TEST_F(Convert, ConfigIsRejectedForAGguf) {
  ASSERT_EQ(convert(demo_model, path("a.gguf")).status, 0);
  std::ofstream(path("config.json")) << R"({"num_attention_heads": 8})";
  const Outcome outcome = run("inspect -m " + path("a.gguf") + " --config " + path("config.json"));
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("--config"), std::string::npos) << outcome.err;
}

// Lines of poems to calibrate with, or to measure.
std::string poem_lines(bool to_measure) {
  const std::vector<std::string> poems =
      to_measure ? std::vector<std::string>{"白日依山尽，黄河入海流。\n欲穷千里目，更上一层楼。",
                                            "红豆生南国，春来发几枝。\n愿君多采撷，此物最相思。"}
                 : std::vector<std::string>{"床前明月光，疑是地上霜。\n举头望明月，低头思故乡。",
                                            "空山不见人，但闻人语响。\n返景入深林，复照青苔上。",
                                            "千山鸟飞绝，万径人踪灭。\n孤舟蓑笠翁，独钓寒江雪。",
                                            "松下问童子，言师采药去。\n只在此山中，云深不知处。",
                                            "春眠不觉晓，处处闻啼鸟。\n夜来风雨声，花落知多少。",
                                            "月落乌啼霜满天，江枫渔火对愁眠。\n姑苏城外寒山寺，夜半钟声到客船。"};
  std::string lines;
  for (const std::string& poem : poems) {
    lines += nlohmann::json{{"prompt", "<|im_start|>user\n写一首诗<|im_end|>\n<|im_start|>assistant\n"}, {"text", poem}}
                 .dump() +
             "\n";
  }
  return lines;
}

// A model with random weights, of which a step of conversion takes milliseconds, and its tokenizer.
void write_small_model(const std::string& folder, float norm_of_layer_1 = 1) {
  SmallModel shape;
  shape.vocab = 426;
  shape.hidden = shape.q_rows = 64;
  shape.k_rows = 32;
  shape.ffn = 96;
  shape.q_norm = 16;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  StoredTensors tensors;
  for (const auto& [name, tensor] : shape.tensors()) {
    const bool given = name == "model.layers.1.input_layernorm.weight";
    std::vector<float> values(size_of_shape(tensor.shape), given ? norm_of_layer_1 : 1.0f);  // of a norm
    if (tensor.shape.size() == 2) {
      for (float& value : values) value = normal(random) / std::sqrt(static_cast<float>(tensor.shape[1]));
    }
    tensors.emplace(name, f32_tensor(tensor.shape, values));
  }
  fs::copy(own_tokenizer, folder);
  std::ofstream(folder + "/model.safetensors", std::ios::binary) << safetensors_bytes(tensors);
}

class CalibratedConvert : public Convert {
 protected:
  CalibratedConvert() {
    write_small_model(model);
    std::ofstream(path("text.jsonl")) << poem_lines(false);
    std::ofstream(path("kept.jsonl")) << poem_lines(true);
  }

  double kl(const std::string& name) const {
    return nlohmann::json::parse(run("perplexity -q --json -m " + path(name) + " --against " + model + " --tokenizer " +
                                     own_tokenizer + " --jsonl -f " + path("kept.jsonl"))
                                     .out)
        .at("against")
        .at("mean_kl");
  }

  std::string text() const { return " -q -t 1 --calibrate " + path("text.jsonl"); }

  const std::string model = path("model");
};

TEST_F(CalibratedConvert, LosesLessThanPlainRounding) {
  ASSERT_EQ(convert(model, path("plain.gguf"), "-q --type iq4_nl").status, 0);
  const Outcome outcome = convert(model, path("calibrated.gguf"), "--type iq4_nl" + text());
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(fs::file_size(path("calibrated.gguf")), fs::file_size(path("plain.gguf")));
  EXPECT_LT(kl("calibrated.gguf"), 0.8 * kl("plain.gguf"));
}

TEST_F(CalibratedConvert, KeepsTheSizeAndPrintsAPlanThatRepeatsTheFile) {
  const Outcome first = convert(model, path("a.gguf"), "--size 80kB" + text());
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_LE(fs::file_size(path("a.gguf")), 80'000u);
  EXPECT_GT(fs::file_size(path("a.gguf")), 79'500u);
  std::ofstream(path("plan.txt")) << first.out;
  const Outcome second =
      convert(model, path("b.gguf"), "-q -t 2 --plan " + path("plan.txt") + " --calibrate " + path("text.jsonl"));
  ASSERT_EQ(second.status, 0) << second.err;
  EXPECT_EQ(fs::file_size(path("a.gguf")), fs::file_size(path("b.gguf")));
  const auto hash = [&](const char* name) {
    return nlohmann::json::parse(run("inspect --json -m " + path(name)).out).at("sha256").get<std::string>();
  };
  EXPECT_EQ(hash("a.gguf"), hash("b.gguf"));
}

TEST_F(CalibratedConvert, RejectsWhatItCannotDoAndLeavesNothing) {
  std::ofstream(path("plan.txt")) << "blk.0.attn_q.weight q8_0\nblk.9.attn_q.weight q8_0\n";
  std::ofstream(path("q3.txt")) << "blk.0.attn_q.weight q3_k\n";
  std::ofstream(path("norm.txt")) << "output_norm.weight f16\n";
  std::ofstream(path("iq2.txt")) << "blk.0.attn_q.weight iq2_xxs\n";
  std::ofstream(path("empty.jsonl")) << "";
  struct Case {
    std::string options;
    int status;
    std::string message;
  };
  const std::vector<Case> cases{
      {"--size 10kB" + text(), 1, "--size is 10000 bytes, expected "},
      {"--bits 2" + text(), 1, "--bits is 2, expected "},
      {"--bits 17" + text(), 2, "--bits is 17, expected 1 to 16 bits per weight"},
      {"--size 3MiB" + text(), 2, "--size is '3MiB', expected a number of bytes"},
      {"--size 0kB" + text(), 2, "--size is '0kB', expected a number of bytes"},
      {"--size MB" + text(), 2, "--size is 'MB', expected a number of bytes"},
      {"--size 1000001GB" + text(), 2, "--size is '1000001GB', expected a number of bytes"},
      {"--size 3MB", 2, "name the text with --calibrate"},
      {text(), 2, "--calibrate quantises, but no type is given"},
      {"--type f16" + text(), 2, "no matrix of the file has a block type"},
      {"--type q8_0 --size 3MB" + text(), 2, "omit one"},
      {"--size 3MB --bits 5" + text(), 2, "give one of them"},
      {"--plan " + path("plan.txt"), 1, "plan.txt: 'blk.9.attn_q.weight' is not a tensor of the file"},
      {"--plan " + path("norm.txt"), 1, "norm.txt: 'output_norm.weight' is a vector or router, whose type stays"},
      {"--plan " + path("q3.txt"), 1, "blk.0.attn_q.weight is q3_k"},
      {"--plan " + path("iq2.txt") + text(), 1, "is iq2_xxs, expected a type that convert writes; choose e.g. q8_0"},
      {"--type q8_0 --calibrate " + path("empty.jsonl"), 1, "has no token to predict"},
      {"--type q8_0 --calibrate " + path("none.jsonl"), 1, "none.jsonl: cannot be"},
  };
  for (const Case& of : cases) {
    const Outcome outcome = convert(model, path("out.gguf"), of.options);
    EXPECT_EQ(outcome.status, of.status) << of.options << outcome.err;
    EXPECT_NE(outcome.err.find(of.message), std::string::npos) << of.options << outcome.err;
    EXPECT_FALSE(fs::exists(path("out.gguf"))) << of.options;
  }
  EXPECT_EQ(convert(model, path("out.pth"), "--type f16" + text()).status, 2);
  const Outcome unread = convert(load_golden("v3-dense").model_path, path("out.gguf"), "--type q8_0" + text());
  EXPECT_EQ(unread.status, 2);
  EXPECT_NE(unread.err.find("--calibrate requires a tokenizer, and the model has none"), std::string::npos);
}

TEST_F(CalibratedConvert, APlanLeavesTensorsThatItDoesNotNameAsTheyAre) {
  std::ofstream(path("plan.txt")) << "blk.0.attn_q.weight q8_0\nblk.0.attn_v.weight f16\nblk.0.ffn_down.weight q6_k\n";
  const Outcome outcome =
      convert(model, path("a.gguf"), "-t 1 --plan " + path("plan.txt") + " --calibrate " + path("text.jsonl"));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("blk.0.ffn_down.weight as q8_0: its 96 columns are not a multiple of 256"),
            std::string::npos)
      << outcome.err;
  const StoredTensors tensors = open_checkpoint(path("a.gguf"), {}).tensors;
  EXPECT_EQ(tensors.at("model.layers.0.self_attn.q_proj.weight").dtype, DType::q8_0);
  EXPECT_EQ(tensors.at("model.layers.0.self_attn.v_proj.weight").dtype, DType::f16);
  EXPECT_EQ(tensors.at("model.layers.0.self_attn.k_proj.weight").dtype, DType::f32);
}

TEST_F(CalibratedConvert, MatricesThatHaveTheTypeStayAsTheyAre) {
  ASSERT_EQ(convert(model, path("a.gguf"), "-q --type q8_0").status, 0);
  ASSERT_EQ(convert(path("a.gguf"), path("b.gguf"), "--type q8_0" + text()).status, 0);
  EXPECT_EQ(kl("a.gguf"), kl("b.gguf"));
}

TEST_F(CalibratedConvert, NotesATextThatTheModelPredictsNoBetterThanChance) {
  const auto error = [&](const std::string& of) {
    return convert(of, path("a.gguf"), "-t 1 --type q8_0 --force --calibrate " + path("text.jsonl")).err;
  };
  EXPECT_NE(error(model).find("nats per token, no better than chance (6.05)"), std::string::npos);
  const std::string known = error(demo_model);
  EXPECT_NE(known.find("GGUF"), std::string::npos) << known;
  EXPECT_EQ(known.find("no better than chance"), std::string::npos) << known;
}

TEST_F(CalibratedConvert, NotesATextThatTheTokenizerHardlyKnows) {
  const std::string command = "-t 1 --type q8_0 --force --calibrate ";
  const Outcome outcome = convert(model, path("a.gguf"), command + path("text.jsonl"));
  EXPECT_NE(outcome.err.find("tokens are parts of characters"), std::string::npos) << outcome.err;
  std::ofstream(path("known.txt")) << "Words that are written with letters.";
  const Outcome known = convert(model, path("a.gguf"), command + path("known.txt"));
  EXPECT_EQ(known.status, 0) << known.err;
  EXPECT_EQ(known.err.find("tokens are parts of characters"), std::string::npos) << known.err;
}

TEST_F(CalibratedConvert, LeavesNothingIfActivationsAreNotFinite) {
  write_small_model(path("broken"), std::nanf(""));
  const Outcome outcome = convert(path("broken"), path("a.gguf"), "--size 80kB" + text());
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("the outputs of layer 1 are not finite on the calibration text"), std::string::npos)
      << outcome.err;
  EXPECT_EQ(left_behind(), std::vector<std::string>({"broken", "kept.jsonl", "model", "text.jsonl"}));
}

TEST_F(CalibratedConvert, LeavesNoPartialFileOnAFullDisk) {
  const Outcome outcome = run("convert " + model + " " + path("a.gguf") + " --size 80kB" + text(), "ulimit -f 60;");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("a.gguf"), std::string::npos) << outcome.err;
  EXPECT_EQ(left_behind(), std::vector<std::string>({"kept.jsonl", "model", "text.jsonl"}));
}

TEST_F(CalibratedConvert, SaysHowMuchTextIsNeeded) {
  std::ofstream(path("short.jsonl")) << R"({"text": "a short text"})" << '\n';
  const Outcome outcome = convert(model, path("a.gguf"), "-t 1 --type q8_0 --calibrate " + path("short.jsonl"));
  EXPECT_NE(outcome.err.find("columns, too few to determine its errors"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace minimind
