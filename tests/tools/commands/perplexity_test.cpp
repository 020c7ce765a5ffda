#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "runtime/kernels/all_instruction_sets.h"
#include "tests/support/cases.h"
#include "tests/support/cli.h"

namespace minimind {
namespace {

using Json = nlohmann::json;

// In nats, in double.
std::vector<double> log_softmax(const float* logits, std::size_t size) {
  double sum = 0;
  for (std::size_t i = 0; i < size; ++i) sum += std::exp(static_cast<double>(logits[i]));
  std::vector<double> result;
  for (std::size_t i = 0; i < size; ++i) result.push_back(logits[i] - std::log(sum));
  return result;
}

class Perplexity : public Cli {
 protected:
  Json json_of(const std::string& arguments) const {
    const Outcome outcome = run("perplexity --json " + arguments);
    EXPECT_EQ(outcome.status, 0) << arguments << ": " << outcome.err;
    return Json::parse(outcome.out, nullptr, false);
  }

  // Returns the logits that the `logits` command writes for these tokens in one context, as log-probabilities.
  std::vector<std::vector<double>> log_probabilities(const GoldenCase& golden, std::size_t begin,
                                                     std::size_t end) const {
    const std::vector<std::int32_t> tokens(golden.tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                                           golden.tokens.begin() + static_cast<std::ptrdiff_t>(end));
    EXPECT_EQ(run("logits -m " + golden.model_path + " --tokens " + joined(tokens) + " -o " + path("l.npy")).status, 0);
    const std::vector<float> logits = read_golden_logits(path("l.npy"), tokens.size(), golden.vocab);
    std::vector<std::vector<double>> rows;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      rows.push_back(log_softmax(logits.data() + i * golden.vocab, golden.vocab));
    }
    return rows;
  }

  void expect_rejected(int status, const std::string& arguments, const std::vector<std::string>& parts) const {
    const Outcome outcome = run("perplexity -q " + arguments);
    EXPECT_EQ(outcome.status, status) << arguments << ": " << outcome.out;
    EXPECT_EQ(outcome.out, "") << arguments;
    for (const std::string& part : parts) {
      EXPECT_NE(outcome.err.find(part), std::string::npos) << arguments << ": " << outcome.err;
    }
  }
};

std::string call(const GoldenCase& golden) {
  return model_options(golden) + " --tokens " + joined(golden.tokens);
}

TEST_F(Perplexity, IsThatOfPyTorchsLogits) {
  for (const char* name : {"v1-moe", "v2-lora", "v3-dense", "v3-yarn", "hf-qwen3-moe"}) {
    const GoldenCase golden = load_golden(name);
    double nats = 0;
    for (std::size_t i = 1; i < golden.tokens.size(); ++i) {
      const auto row = log_softmax(golden.logits.data() + (i - 1) * golden.vocab, golden.vocab);
      nats -= row[static_cast<std::size_t>(golden.tokens[i])];
    }
    nats /= static_cast<double>(golden.tokens.size() - 1);
    const Json json = json_of(call(golden));
    EXPECT_EQ(json["tokens"], golden.tokens.size() - 1);
    // The logits are within 2e-5 of PyTorch's (README); their errors partly cancel.
    EXPECT_NEAR(json["nats_per_token"].get<double>(), nats, 1e-5) << name;
    EXPECT_NEAR(json["perplexity"].get<double>(), std::exp(nats), 1e-5 * std::exp(nats)) << name;
    EXPECT_TRUE(json["bits_per_byte"].is_null()) << "there is no tokenizer";
  }
}

TEST_F(Perplexity, EachWindowIsASeparateContext) {
  const GoldenCase golden = load_golden("v3-dense");
  const std::size_t tokens = golden.tokens.size();
  for (const auto& [size, stride] : {std::pair<std::size_t, std::size_t>{8, 3}, {6, 5}, {5, 5}}) {
    double nats = 0;
    std::size_t scored = 1;
    for (std::size_t begin = 0; scored < tokens; begin += stride) {
      const auto rows = log_probabilities(golden, begin, std::min(begin + size, tokens));
      const std::size_t end = std::min(begin + size + (size == stride), tokens);
      for (; scored < end; ++scored) nats -= rows[scored - 1 - begin][static_cast<std::size_t>(golden.tokens[scored])];
    }
    const Json json = json_of(call(golden) + " -c " + std::to_string(size) + " --stride " + std::to_string(stride));
    EXPECT_EQ(json["tokens"], tokens - 1);
    // The same logits, summed in another order.
    EXPECT_NEAR(json["nats_per_token"].get<double>(), nats / static_cast<double>(tokens - 1), 1e-12) << size;
  }
}

TEST_F(Perplexity, AgainstAModelGivesKlAndAgreement) {
  const GoldenCase golden = load_golden("v3-dense"), other = load_golden("v3-fp32");
  const std::size_t scored = golden.tokens.size() - 1;
  GoldenCase other_on_our_tokens = other;
  other_on_our_tokens.tokens = golden.tokens;
  const auto ours = log_probabilities(golden, 0, scored), theirs = log_probabilities(other_on_our_tokens, 0, scored);
  std::vector<double> kl(scored, 0);
  double nats = 0;
  std::size_t agreeing = 0;
  for (std::size_t i = 0; i < scored; ++i) {
    for (std::size_t v = 0; v < golden.vocab; ++v) kl[i] += std::exp(theirs[i][v]) * (theirs[i][v] - ours[i][v]);
    nats -= theirs[i][static_cast<std::size_t>(golden.tokens[i + 1])];
    agreeing += std::max_element(ours[i].begin(), ours[i].end()) - ours[i].begin() ==
                std::max_element(theirs[i].begin(), theirs[i].end()) - theirs[i].begin();
  }
  const Json json = json_of(call(golden) + " --against " + other.model_path), against = json["against"];
  const double count = static_cast<double>(scored);
  EXPECT_NEAR(against["mean_kl"].get<double>(), std::accumulate(kl.begin(), kl.end(), 0.0) / count, 1e-12);
  EXPECT_NEAR(against["nats_per_token"].get<double>(), nats / count, 1e-12);
  EXPECT_EQ(against["top1_agreeing"], agreeing);
  EXPECT_DOUBLE_EQ(against["top1_agreement"].get<double>(), static_cast<double>(agreeing) / count);
  std::sort(kl.begin(), kl.end());
  const double rank = 0.99 * (count - 1);
  const auto below = static_cast<std::size_t>(rank);
  EXPECT_NEAR(against["kl_99th_percentile"].get<double>(),
              kl[below] + (rank - std::floor(rank)) * (kl[below + 1] - kl[below]), 1e-12);
}

// Each text is a group, and so is each window of a text.
TEST_F(Perplexity, AgainstHasAnIntervalOfTheMeanIfThereAreEnoughTextsOrWindows) {
  const std::string model = MINIMIND_SOURCE_DIR "/weights/demo/model.pth";
  const std::string options = " -m " + model + " --type q4_0 --against " + model;
  const auto against = [&](const std::string& arguments) { return json_of(arguments + options)["against"]; };
  std::string lines, text;
  for (const char* line :
       {"山居", "秋夜", "春日", "江上", "床前明月光", "白日依山尽", "夜泊", "送友人", "雪", "梅花"}) {
    lines += Json(std::string("五言绝句《") + line + "》").dump() + "\n";
    text += line;
  }
  std::ofstream(path("jsonl")) << lines;
  std::ofstream(path("text")) << text;
  const std::string few = lines.substr(lines.find('\n') + 1);
  std::ofstream(path("few")) << few;
  const std::pair<std::string, std::string> enough[] = {{"--jsonl -f " + path("jsonl"), "texts"},
                                                        {"-c 4 --stride 2 -f " + path("text"), "windows"}};
  for (const auto& [arguments, groups] : enough) {
    const Json found = against(arguments);
    EXPECT_LT(found["mean_kl_95"][0], found["mean_kl"]) << arguments;
    EXPECT_GT(found["mean_kl_95"][1], found["mean_kl"]) << arguments;
    EXPECT_EQ(found["mean_kl_95_groups"]["are"], groups);
    EXPECT_GE(found["mean_kl_95_groups"]["count"], 10);
    const Outcome shown = run("perplexity -q " + arguments + options);
    EXPECT_NE(shown.out.find(' ' + groups + " as independent observations"), std::string::npos) << shown.out;
    EXPECT_NE(shown.out.find("\n95 % interval       0.0"), std::string::npos) << shown.out;
  }
  EXPECT_EQ(against("--jsonl -f " + path("few"))["mean_kl_95"], nullptr);
  EXPECT_EQ(against("-f " + path("text"))["mean_kl_95"], nullptr);
  EXPECT_NE(run("perplexity -q -f " + path("text") + options).out.find("at least 10 texts or windows"),
            std::string::npos);
}

TEST_F(Perplexity, TypeDoesNotApplyToTheSecondModel) {
  const std::string model = MINIMIND_SOURCE_DIR "/weights/demo/model.pth", text = " -p 五言绝句《山居》 -m " + model;
  const Json same = json_of(text + " --against " + model);
  EXPECT_EQ(same["against"]["mean_kl"], 0);
  EXPECT_EQ(same["against"]["top1_agreement"], 1);
  const Json quantised = json_of(text + " --type q4_0 --against " + model);
  EXPECT_EQ(quantised["against"]["nats_per_token"], same["nats_per_token"]);
  EXPECT_NE(quantised["nats_per_token"], same["nats_per_token"]);
  EXPECT_GT(quantised["against"]["mean_kl"].get<double>(), 1e-3);
}

TEST_F(Perplexity, ComputeDoesNotApplyToTheSecondModel) {
  if (kernels::runnable_bf16().count == 0) GTEST_SKIP() << "this machine has no products of bf16";
  const std::string model = MINIMIND_SOURCE_DIR "/weights/demo/model.pth", text = " -p 五言绝句《山居》 -m " + model;
  const Json exact = json_of(text), rounded = json_of(text + " --compute bf16 --against " + model);
  EXPECT_EQ(rounded["against"]["nats_per_token"], exact["nats_per_token"]);
  EXPECT_NE(rounded["nats_per_token"], exact["nats_per_token"]);
  EXPECT_GT(rounded["against"]["mean_kl"].get<double>(), 0);
  EXPECT_LT(rounded["against"]["mean_kl"].get<double>(), 1e-3) << "less than of any quantised type";
}

TEST_F(Perplexity, BitsPerByteCountTheScoredBytes) {
  const std::string text = "五言绝句《山居》\n🙂<|im_end|>";
  std::ofstream(path("text")) << text;
  const Outcome ids = run("tokenize -f " + path("text") + demo);
  const std::string rest = ids.out.substr(ids.out.find(',') + 1);
  const std::string rest_text = run("tokenize --decode -p " + rest.substr(0, rest.size() - 1) + demo).out;
  const Json json = json_of("-f " + path("text") + demo);
  EXPECT_EQ(json["bytes"], rest_text.size());
  EXPECT_DOUBLE_EQ(json["bits_per_byte"].get<double>(), json["nats_per_token"].get<double>() *
                                                            json["tokens"].get<double>() / std::log(2) /
                                                            static_cast<double>(rest_text.size()));
}

TEST_F(Perplexity, TheTextIsVerbatimFromEverySource) {
  const std::string text = "静夜思\n床前明月光，";
  std::ofstream(path("text")) << text;
  const std::string ids = run("tokenize -f " + path("text") + demo).out;
  const Json json = json_of("-f " + path("text") + demo);
  EXPECT_EQ(json["tokens"], std::count(ids.begin(), ids.end(), ',')) << "nothing is added before or after it";
  EXPECT_EQ(json_of(demo + " < " + path("text")), json);
  EXPECT_EQ(json_of("-p '" + text + "'" + demo), json);
  EXPECT_EQ(json_of("--tokens " + ids.substr(0, ids.size() - 1) + demo), json);
}

TEST_F(Perplexity, JsonLinesAreSeparateContexts) {
  const std::string texts[] = {"五言绝句《山居》", "床前明月光，"};
  std::ofstream(path("jsonl")) << Json(texts[0]).dump() << "\n\n" << Json(texts[1]).dump() << "\n";
  double nats = 0, tokens = 0;
  for (const std::string& text : texts) {
    const Json json = json_of("-p " + text + demo);
    nats += json["nats_per_token"].get<double>() * json["tokens"].get<double>();
    tokens += json["tokens"].get<double>();
  }
  const Json json = json_of("--jsonl -f " + path("jsonl") + demo);
  EXPECT_EQ(json["tokens"], tokens);
  EXPECT_NEAR(json["nats_per_token"].get<double>(), nats / tokens, 1e-12);
  std::ofstream(path("jsonl")) << "\"明月光\"\n[1]\n";
  expect_rejected(1, "--jsonl -f " + path("jsonl") + demo, {"line 2"});
  std::ofstream(path("jsonl")) << "\"明月光\"\n\"\"\n";
  expect_rejected(1, "--jsonl -f " + path("jsonl") + demo, {"line 2", "0 tokens"});
}

// The nats of the whole text are those of the prompt plus those of the rest, in one window and in many.
TEST_F(Perplexity, ScoresTheTextAfterAPromptOnly) {
  const std::string prompt = "五言绝句《山居》\n", text = "床前明月光，疑是地上霜。";
  std::ofstream(path("prompt")) << prompt;
  std::ofstream(path("whole")) << prompt << text;
  std::ofstream(path("jsonl")) << Json{{"prompt", prompt}, {"text", text}}.dump() << "\n";
  const auto sum = [](const Json& json) { return json["nats_per_token"].get<double>() * json["tokens"].get<double>(); };
  const Json whole = json_of("-f " + path("whole") + demo), alone = json_of("-f " + path("prompt") + demo);
  const Json json = json_of("--jsonl -f " + path("jsonl") + demo);
  EXPECT_EQ(json["tokens"], whole["tokens"].get<int>() - alone["tokens"].get<int>());
  EXPECT_EQ(json["bytes"], text.size());
  EXPECT_NEAR(sum(json), sum(whole) - sum(alone), 1e-9);
  const std::string windows = " -c 6 --stride 2" + demo;
  EXPECT_NEAR(sum(json_of("--jsonl -f " + path("jsonl") + windows)),
              sum(json_of("-f " + path("whole") + windows)) - sum(json_of("-f " + path("prompt") + windows)), 1e-9);

  for (const char* line :
       {R"({"prompt": "a"})", R"({"prompt": "a", "text": 1})", R"({"prompt": "a", "text": "b", "c": 1})"}) {
    std::ofstream(path("jsonl")) << line << "\n";
    expect_rejected(1, "--jsonl -f " + path("jsonl") + demo, {"line 1", "prompt"});
  }
  std::ofstream(path("jsonl")) << R"({"prompt": "", "text": "a"})"
                               << "\n";
  expect_rejected(1, "--jsonl -f " + path("jsonl") + demo, {"line 1", "prompt of 0 tokens"});
}

TEST_F(Perplexity, UsageErrorsAreReportedFirst) {
  expect_rejected(2, "-p text --stride 0" + demo, {"--stride: 0 is too small"});
  expect_rejected(2, "-p text -c 8 --stride 9" + demo, {"--stride 9", "8"});
  expect_rejected(2, "-p text --stride 513" + demo, {"--stride 513", "512"});
  expect_rejected(2, "-p text -c 1" + demo, {"--ctx-size: 1 is too small"});
  expect_rejected(2, "-p text --stride -1" + demo, {"--stride"});
  expect_rejected(2, "-p text --tokens 1,2" + demo, {"as text and as token ids"});
  expect_rejected(2, "--tokens ''" + demo, {"--tokens"});
  expect_rejected(2, "--tokens 1,x" + demo, {"'x'"});
  EXPECT_EQ(json_of("-p 床前明月光 -c 2 --stride 2" + demo)["complete"], true);
}

TEST_F(Perplexity, RejectsTextsThatCannotBeScored) {
  expect_rejected(1, "-p ''" + demo, {"0 tokens", "2 or more"});
  expect_rejected(1, "--tokens 7" + demo, {"1 token"});
  expect_rejected(1, "--tokens 1,6400,2" + demo, {"6400"});
  expect_rejected(1, "-f " + path("nowhere") + demo, {path("nowhere")});
  expect_rejected(1, "-p text -m " + load_golden("v3-dense").model_path, {"tokenizer"});
}

TEST_F(Perplexity, ModelsThatCannotBeComparedAreNamed) {
  const GoldenCase golden = load_golden("v3-dense");
  expect_rejected(1, "-p text --against " + golden.model_path + demo,
                  {golden.model_path, "expected 6400 as in", std::to_string(golden.vocab)});
  expect_rejected(1, "-p text --against " + path("missing.pth") + demo, {"missing.pth"});
  std::filesystem::copy_file(MINIMIND_SOURCE_DIR "/weights/demo/model.pth", path("model.pth"));
  std::string tokenizer = read_whole_file(MINIMIND_SOURCE_DIR "/weights/demo/tokenizer.json");
  for (std::size_t at = 0; (at = tokenizer.find("<|im_end|>", at)) != std::string::npos;) {
    tokenizer.replace(at, 10, "<|xx_end|>");
  }
  std::ofstream(path("tokenizer.json")) << tokenizer;
  expect_rejected(1, "-p text --against " + path("model.pth") + demo,
                  {path("model.pth"), "token 2", "'<|im_end|>'", "'<|xx_end|>'"});
}

TEST_F(Perplexity, CtrlCPrintsTheScoresSoFar) {
  std::ofstream ids(path("ids"));
  for (int i = 0; i < 300'000; ++i) ids << i % 6400 << "\n";
  ids.close();
  const std::string seconds = is_emulated() ? "20" : "2";
  const Outcome outcome = run("perplexity --json --tokens-file " + path("ids") + demo,
                              "timeout --foreground --preserve-status -s INT " + seconds);
  EXPECT_EQ(outcome.status, 130) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["complete"], false);
  EXPECT_GT(json["tokens"].get<std::size_t>(), 0u);
  EXPECT_NE(outcome.err.find("interrupted after " + json["tokens"].dump() + " of 299999 tokens"), std::string::npos)
      << outcome.err;
}

// Stderr is a terminal 60 columns wide.
TEST_F(Perplexity, ProgressIsDrawnOnATerminalAndCleared) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
  ASSERT_GE(terminal, 0);
  ASSERT_EQ(grantpt(terminal) + unlockpt(terminal), 0);
  const winsize size{.ws_row = 20, .ws_col = 60, .ws_xpixel = 0, .ws_ypixel = 0};
  const std::string name = ptsname(terminal);
  const int other_end = open(name.c_str(), O_RDWR | O_NOCTTY);
  ASSERT_EQ(ioctl(other_end, TIOCSWINSZ, &size), 0);
  std::ofstream(path("jsonl")) << "\"五言绝句《山居》\"\n\"床前明月光，\"\n";
  ASSERT_EQ(std::system(
                (program() + " perplexity -q --jsonl -f " + path("jsonl") + demo + " > " + path("out") + " 2> " + name)
                    .c_str()),
            0);
  // The kernel delivers the output in pieces.
  std::string drawn;
  pollfd ready{.fd = terminal, .events = POLLIN, .revents = 0};
  while (!drawn.ends_with("\r\x1b[K") && poll(&ready, 1, 2000) == 1) {
    char piece[4096];
    const ssize_t count = read(terminal, piece, sizeof piece);
    if (count <= 0) break;
    drawn.append(piece, static_cast<std::size_t>(count));
  }
  close(other_end);
  close(terminal);
  EXPECT_TRUE(drawn.starts_with("\rperplexity [")) << drawn;
  EXPECT_NE(drawn.find(" tokens perplexity "), std::string::npos) << drawn;
  EXPECT_TRUE(drawn.ends_with("\r\x1b[K")) << drawn;
  EXPECT_EQ(drawn.substr(1).find('\x1b'), 59u) << "the line is as wide as the terminal less one: " << drawn;
  EXPECT_EQ(run("perplexity -q -p 床前明月光" + demo).err, "") << "no progress without a terminal";
}

}  // namespace
}  // namespace minimind
