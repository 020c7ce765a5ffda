#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/inside/trace_file.h"
#include "tests/support/cli.h"
#include "tests/support/little_endian.h"

namespace minimind {
namespace {

using Json = nlohmann::json;

const std::string golden_traces = MINIMIND_SOURCE_DIR "/tests/golden_traces/";

// A golden trace with another name, of the same length, for a point.
std::string with_name(const std::string& trace_name, const std::string& name, const std::string& other) {
  std::string trace = read_whole_file(golden_traces + trace_name + ".safetensors");
  const std::size_t at = trace.find('"' + name + '"');
  EXPECT_NE(at, std::string::npos);
  return trace.replace(at + 1, name.size(), other);
}

class TraceCommand : public Cli {
 protected:
  void expect_error(int status, const std::string& arguments, const std::string& part) const {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, status) << arguments << ": " << outcome.err;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << arguments << ": " << outcome.err;
  }
};

TEST_F(TraceCommand, WritesWhatCompareThenAccepts) {
  const GoldenCase golden = load_golden("v1-moe");
  const std::string given = " " + golden.model_path + " --tokens " + joined(golden.tokens);
  const Outcome written = run("trace" + given + " -o " + path("t.safetensors"));
  ASSERT_EQ(written.status, 0) << written.err;
  EXPECT_EQ(written.out, "");
  EXPECT_NE(written.err.find("20 tokens, at most "), std::string::npos) << written.err;
  const Trace trace = read_trace(InputFile::open(path("t.safetensors")));
  EXPECT_EQ(trace.model, "model.pth");
  EXPECT_EQ(trace.own_names.at("model.layers.0.self_attn.q_proj"), "layers.0.attention.wq");
  const Outcome compared = run("compare -q" + given + " --trace " + path("t.safetensors"));
  EXPECT_EQ(compared.status, 0) << compared.out << compared.err;
  EXPECT_NE(compared.out.find("max relative difference 0, within the tolerance of 0.0001"), std::string::npos);
}

TEST_F(TraceCommand, SaysWhetherTheWeightsAreThoseOfTheTrace) {
  const GoldenCase golden = load_golden("v3-dense");
  const std::string trace = " --trace " + path("t.safetensors");
  ASSERT_EQ(
      run("trace " + golden.model_path + " --tokens " + joined(golden.tokens) + " -o " + path("t.safetensors")).status,
      0);
  EXPECT_EQ(Json::parse(run("compare -q --json " + golden.model_path + trace).out)["same_weights"], true);
  const std::string other = load_golden("v3-fp32").model_path;
  EXPECT_EQ(Json::parse(run("compare -q --json " + other + trace).out)["same_weights"], false);
  const Outcome outcome = run("compare -q " + other + trace);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.out.find("the trace is of other weights; it is of 'model.pth'"), std::string::npos) << outcome.out;
  EXPECT_EQ(
      Json::parse(run("compare -q --json " + golden.model_path + " --trace " + golden_traces + "v3-dense.safetensors")
                      .out)["same_weights"],
      nullptr);
}

TEST_F(TraceCommand, SuggestsThePointThatATensorMayBe) {
  const GoldenCase golden = load_golden("v3-dense");
  const TemporaryFile file(with_name("v3-dense", "model.layers.1.post_attention_layernorm.input",
                                     "model.layers.1.post_attention_layernorm.inptu"));
  const Outcome outcome = run("compare -q " + golden.model_path + " --trace " + file.path());
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(
      outcome.out.find("1 points of the model are not in the trace: model.layers.1.post_attention_layernorm.input"),
      std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("    model.layers.1.post_attention_layernorm.inptu: did you mean "
                             "model.layers.1.post_attention_layernorm.input?"),
            std::string::npos)
      << outcome.out;
}

TEST_F(TraceCommand, ListsThePointsThatTheTraceLacksBeforeTheFirstThatDiffers) {
  const std::string trace =
      with_name("changed-activation", "model.layers.0.mlp.down_proj.input", "model.layers.0.mlp.down_proj.inptu");
  const TemporaryFile file(trace);
  const std::string call = "compare -q " + load_golden("v3-dense").model_path + " --trace " + file.path();
  const Outcome outcome = run(call);
  EXPECT_NE(outcome.out.find("first over the tolerance of 0.0001: model.layers.0.mlp.down_proj, by "),
            std::string::npos);
  EXPECT_NE(outcome.out.find("the cause may also be at a point before it that the trace lacks:\n"
                             "    model.layers.0.mlp.down_proj.input: h = silu(g) * u\n"),
            std::string::npos)
      << outcome.out;
  EXPECT_EQ(Json::parse(run(call + " --json").out)["lacking_before"], Json({"model.layers.0.mlp.down_proj.input"}));
}

TEST_F(TraceCommand, NamesAPointWhoseDifferenceJumpsBelowTheTolerance) {
  std::string trace = read_whole_file(golden_traces + "v3-dense.safetensors");
  const std::string call = "compare -q " + load_golden("v3-dense").model_path + " --trace ";
  EXPECT_EQ(Json::parse(run(call + golden_traces + "v3-dense.safetensors --json").out)["first_jump"], nullptr);
  std::uint64_t header_size = 0;
  std::memcpy(&header_size, trace.data(), sizeof header_size);
  const Json header = Json::parse(trace.substr(sizeof header_size, header_size));
  const Json& place = header["model.layers.1.self_attn.q_norm"]["data_offsets"];
  for (std::size_t at = place[0]; at < place[1]; at += sizeof(float)) {
    float value = 0;
    char* const bytes = trace.data() + sizeof header_size + header_size + at;
    std::memcpy(&value, bytes, sizeof value);
    value *= 1 + 2e-5f;
    std::memcpy(bytes, &value, sizeof value);
  }
  const TemporaryFile file(trace);
  const Outcome outcome = run(call + file.path());
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.out.find("within the tolerance of 0.0001\nthe difference jumps at model.layers.1.self_attn.q_norm, "
                             "to 2e-05\n    q = x / sqrt(mean(x²) + eps) * weight of each head\n"),
            std::string::npos)
      << outcome.out;
}

TEST_F(TraceCommand, SummarizesChosenPoints) {
  const Outcome outcome = run("trace -q -p 春 --json --points 'layers.*.mlp.*' --points lm_head --layers 0" + demo);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["tokens"].size(), 2);
  ASSERT_EQ(json["points"].size(), 4);
  const Json& gate = json["points"][0];
  EXPECT_EQ(gate["name"], "model.layers.0.mlp.gate_proj");
  EXPECT_EQ(gate["shape"], Json({2, 416}));
  EXPECT_EQ(gate["axes"], Json({"tokens", "intermediate"}));
  EXPECT_EQ(gate["nan"], 0);
  EXPECT_LT(gate["min"], gate["mean"]);
  EXPECT_LT(gate["mean"], gate["max"]);
  const Outcome table = run("trace -q -p 春 --points 'layers.*.mlp.*' --layers 0" + demo);
  EXPECT_EQ(std::count(table.out.begin(), table.out.end(), '\n'), 5);
}

TEST_F(TraceCommand, ListsPointsWithFormulas) {
  const Outcome outcome = run("trace -q --list --points '*.q_rope' --layers 5" + demo);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out,
            "model.layers.5.self_attn.q_rope [tokens, 6 heads, 32 head_dim]\n"
            "    (a, b) = (a cos - b sin, a sin + b cos) for the pairs (i, i + head_dim / 2), by the angle position / "
            "theta^(2i / head_dim)\n");
  const Json json = Json::parse(run("trace -q --list --json --points lm_head" + demo).out);
  EXPECT_EQ(json["points"][0]["sizes"], Json({nullptr, 6400}));
}

TEST_F(TraceCommand, RejectsWrongCalls) {
  expect_error(2, "trace -q -p a --points 'model.layers.0.mlp.gate_prj'" + demo,
               "did you mean model.layers.0.mlp.gate_proj?");
  expect_error(2, "trace -q -p a --points 'model.layers.0.mlp.gte_prj'" + demo,
               "did you mean model.layers.0.mlp.gate_proj?");
  expect_error(2, "trace -q -p a --layers 6" + demo, "--layers");
  expect_error(2, "trace -q --list -o x" + demo, "--list computes no values for -o");
  expect_error(1, "trace -q --tokens 6400" + demo, "token 6400 is not in the model's vocabulary");
  expect_error(1, "trace -q -p a -o /nonexistent/t.safetensors" + demo, "/nonexistent");
}

TEST_F(TraceCommand, ReplacesNoFileOfTheModel) {
  const std::string folder = MINIMIND_SOURCE_DIR "/weights/demo/";
  for (const char* const name : {"model.pth", "tokenizer.json"}) {
    std::filesystem::copy_file(folder + name, path(name));
  }
  std::filesystem::create_symlink(path("model.pth"), path("link.pth"));
  const std::string model = " -q -m " + path("model.pth"), part = ": is also an input; name another output";
  for (const char* const name : {"model.pth", "link.pth"}) {
    expect_error(2, "trace -p a -o " + path(name) + model, path(name) + part);
    expect_error(2, "logits --tokens 1 -o " + path(name) + model, path(name) + part);
  }
  expect_error(2, "trace -p a -o " + path("tokenizer.json") + model, path("tokenizer.json") + part);
  EXPECT_TRUE(read_whole_file(path("model.pth")) == read_whole_file(folder + "model.pth"));
  EXPECT_TRUE(read_whole_file(path("tokenizer.json")) == read_whole_file(folder + "tokenizer.json"));
}

TEST_F(TraceCommand, TakesAModelWhoseNameIsNotUtf8) {
  const std::string model = path("a\xff.pth"), call = "trace -q --tokens 1,2 --points lm_head -m " + model;
  std::filesystem::copy_file(MINIMIND_SOURCE_DIR "/weights/demo/model.pth", model);
  const Outcome printed = run(call + " --json");
  ASSERT_EQ(printed.status, 0) << printed.err;
  EXPECT_EQ(Json::parse(printed.out)["model"], "a\uFFFD.pth");
  const Outcome written = run(call + " -o " + path("t.safetensors"));
  ASSERT_EQ(written.status, 0) << written.err;
  EXPECT_EQ(read_trace(InputFile::open(path("t.safetensors"))).model, "a\uFFFD.pth");
}

// Of 300,000 tokens, which would run for hours.
TEST_F(TraceCommand, DoesNotRunTokensForWhichATraceHasNoValues) {
  const std::string header = R"({"__metadata__":{"tokens":")" + joined(std::vector<std::int32_t>(300'000, 1)) +
                             R"("},"model.embed_tokens":{"dtype":"F32","shape":[1,32],"data_offsets":[0,128]}})";
  std::ofstream(path("t.safetensors"), std::ios::binary)
      << little_endian(std::uint64_t{header.size()}) << header << std::string(128, '\0');
  const Outcome outcome =
      run("compare -q " + load_golden("v3-dense").model_path + " --trace " + path("t.safetensors"), "ulimit -t 20;");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("model.embed_tokens is [1, 32], expected [300000, 32]"), std::string::npos) << outcome.err;
}

TEST_F(TraceCommand, NamesTheFirstPointThatDiffers) {
  const std::string model = " " + load_golden("v3-dense").model_path;
  const Outcome outcome = run("compare -q" + model + " --trace " + golden_traces + "changed-activation.safetensors");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(
      outcome.out.find("first over the tolerance of 0.0001: model.layers.0.mlp.down_proj.input, by 0.2 at token 4\n"
                       "    h = silu(g) * u\n"),
      std::string::npos)
      << outcome.out;
  const Json json =
      Json::parse(run("compare -q --json" + model + " --trace " + golden_traces + "changed-eps.safetensors").out);
  EXPECT_EQ(json["first_over"], "model.layers.0.input_layernorm");
  EXPECT_EQ(json["formula"], "n = x / sqrt(mean(x²) + eps) * weight");
  EXPECT_EQ(json["passed"], false);
  EXPECT_EQ(json["missing"][0], "model.layers.1.input_layernorm");
  EXPECT_EQ(run("compare -q --tolerance 10" + model + " --trace " + golden_traces + "changed-eps.safetensors").status,
            0);
}

TEST_F(TraceCommand, SaysWhichTraceIsOfAnotherModelOrText) {
  const std::string trace = " --trace " + golden_traces + "v3-dense.safetensors", call = "compare -q ";
  expect_error(1, call + demo + trace, "is a trace of another model: model.embed_tokens is [6, 32], expected [6, 256]");
  const std::string model = load_golden("v3-dense").model_path;
  expect_error(1, call + model + trace + " --tokens 25,42,3", "is a trace of another text: token 2 is 81, expected 3");
  expect_error(1, call + model + trace + " --tokens 25", "is a trace of another text: token 1 is 42, expected none");
  const Outcome moe = run(call + load_golden("v3-moe").model_path + trace);
  EXPECT_EQ(moe.status, 1);
  EXPECT_NE(moe.out.find("8 tensors of the trace are no points of the model: model.layers.0.mlp.down_proj, "),
            std::string::npos);
  EXPECT_NE(moe.out.find("the embeddings differ, so the trace may be of another model; it is of 'v3-dense'"),
            std::string::npos);
  expect_error(2, "compare" + demo, "there is nothing to compare with, expected --reference or --trace");
  expect_error(2, "compare" + demo + trace + " --reference r.npy", "--reference and --trace are given");
}

}  // namespace
}  // namespace minimind
