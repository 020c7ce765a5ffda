#include "weights/model/python_config.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/stored.h"
#include "tests/support/temporary_file.h"
#include "weights/model/python_text.h"

namespace minimind {
namespace {

CanonicalTensors canonical_tensors(const SmallModel& model) {
  return to_canonical_names(model.tensors(), "test.pth");
}

std::string attention_code(const std::string& attention) {
  return "class Attention(nn.Module):\n"
         "    def __init__(self, config):\n"
         "        " +
         attention + "\n";
}

// Code in the manner of MiniMind's third generation. `settings` are statements of __init__, `attention` of Attention's.
std::string code(const std::string& settings, const std::string& attention = "self.q_norm = 1") {
  return "class MiniMindConfig(PretrainedConfig):\n"
         "    model_type = \"minimind\"\n"
         "    def __init__(self, hidden_size=768, num_hidden_layers=8, use_moe=False, **kwargs):\n"
         "        super().__init__(**kwargs)\n"
         "        self.hidden_size = hidden_size\n" +
         settings + "\n" + attention_code(attention);
}

std::optional<PythonConfig> read(const std::string& text, const SmallModel& model = {}) {
  return read_python_config({.config = {"m.py", text}, .equations = {}, .trainer = {}}, canonical_tensors(model));
}

std::optional<nlohmann::json> value_of(const std::string& expression, const python::Values& values = {}) {
  const auto statements = python::read_statements(expression);
  return statements.size() == 1 ? python::evaluate(statements[0].tokens, values) : std::nullopt;
}

TEST(PythonExpression, LiteralsAndArithmeticHavePythonsValues) {
  EXPECT_EQ(value_of("1_000_000"), 1000000);
  EXPECT_EQ(value_of("0x10"), 16);
  EXPECT_EQ(value_of("1e-5"), 1e-5);
  EXPECT_EQ(value_of("-2 ** 2"), -4);
  EXPECT_EQ(value_of("2 ** 3 ** 2"), 512);
  EXPECT_EQ(value_of("2 ** -1"), 0.5);
  EXPECT_EQ(value_of("7 // 2 + -7 // 2 + -7 % 3"), 1);
  EXPECT_EQ(value_of("7 / 2"), 3.5);
  EXPECT_EQ(value_of("'a' if not True else None or \"b\""), "b");
  EXPECT_EQ(value_of("math.ceil(768 * math.pi / 64) * 64"), 2432);
  EXPECT_EQ(value_of("int(2 * 4 * 512 / 3)"), 1365);
  EXPECT_EQ(value_of("kwargs.get('x', d // h,)", {{"d", 512}, {"h", 8}}), 64);
  EXPECT_EQ(value_of("{'type': 'yarn', \"factor\": 16}"), (nlohmann::json{{"type", "yarn"}, {"factor", 16}}));
  EXPECT_EQ(value_of("self.a is not None and self.a > 2", {{"self.a", 3}}), true);
  EXPECT_EQ(value_of("1E+3-1e+2-.5"), 899.5);
  EXPECT_EQ(value_of("0xe+0X1"), 15);
  EXPECT_EQ(value_of("99999999999999999999"), 1e20);
  EXPECT_EQ(value_of("+True - False * 3 + math.floor(-1.5) + math.sqrt(16) + float(3)"), 6);
  EXPECT_EQ(value_of("2.0 ** 3 - 4 ** 0.5"), 6);
  EXPECT_EQ(value_of("kwargs.get('x',)"), nullptr);
  EXPECT_EQ(value_of("kwargs.get(1, 2)", {{"kwargs.1", 3}}), 2) << "no keyword is a number";
}

TEST(PythonExpression, ConditionsHavePythonsValues) {
  EXPECT_EQ(value_of("'' or 0 or 0.0 or None or {} or 'a' or 'b'"), "a");
  EXPECT_EQ(value_of("1 and 'a' and {'b': 1} and 0 and 2"), 0);
  for (const char* truth : {"1 == 1.0", "True == 1", "'a' == \"a\"", "1 != '1'", "1 <= 1", "2 >= 1", "1 < 2 - .5"}) {
    EXPECT_EQ(value_of(truth), true) << truth;
    EXPECT_EQ(value_of("not " + std::string(truth)), false) << truth;
  }
}

TEST(PythonExpression, AnythingElseHasNoValue) {
  for (const char* expression : {"THETA",
                                 "f(1)",
                                 "x[0]",
                                 "1 +",
                                 "(1",
                                 "1 // 0",
                                 "1 / 0",
                                 "f'{x}'",
                                 "b'a'",
                                 "lambda: 1",
                                 "1 2",
                                 "2 ** 99",
                                 "9 ** 9 ** 9",
                                 "[1]",
                                 "math.sqrt(-1)",
                                 "int('x')",
                                 "-'a'",
                                 "{1: 2}",
                                 "1j",
                                 "",
                                 "0xg",
                                 "1e999",
                                 "1 'if' True else 2",
                                 "None.",
                                 "+'a'",
                                 "()",
                                 "{'a' 1}",
                                 "1 < 2 < 3"}) {
    EXPECT_EQ(value_of(expression), std::nullopt) << expression;
  }
  EXPECT_EQ(value_of(std::string(100000, '(')), std::nullopt);
  EXPECT_EQ(value_of(std::string(100000, '-') + "1"), std::nullopt);
}

// JSON has null for them, which would state nothing in silence.
TEST(PythonExpression, NumbersAreFinite) {
  for (const char* expression : {"1e308 * 10", "-(1e308 + 1e308)", "1e308 / 1e-308", "0 ** -1", "(-8) ** 0.5"}) {
    EXPECT_EQ(value_of(expression), std::nullopt) << expression;
  }
}

// Values are copied wherever they are named: else twenty lines take gigabytes.
TEST(PythonExpression, ValuesAreSmall) {
  const python::Values values{{"d", nlohmann::json{{"a", 1}}}};
  EXPECT_EQ(value_of("d", values), (nlohmann::json{{"a", 1}}));
  EXPECT_EQ(value_of("{'x': d}", values), std::nullopt);
  EXPECT_EQ(value_of("'" + std::string(64, 'a') + "'"), std::string(64, 'a'));
  EXPECT_EQ(value_of("'" + std::string(65, 'a') + "'"), std::nullopt);
  std::string entries;
  for (int i = 0; i < 16; ++i) entries += fmt::format("'{}': 1,", i);
  EXPECT_TRUE(value_of("{" + entries + "}"));
  EXPECT_EQ(value_of("{" + entries + "'more': 1}"), std::nullopt);
}

TEST(PythonText, StatementsSpanBracketsAndContinuedLines) {
  const auto statements =
      python::read_statements("a = [1,  # one\n  2]\nb = 1 + \\\n  2; c = '''x\n# y'''\n  d = \"\\\"#\" # e");
  ASSERT_EQ(statements.size(), 4u);
  EXPECT_EQ(statements[0].tokens.size(), 7u);
  EXPECT_EQ(statements[1].tokens.size(), 5u);
  EXPECT_EQ(statements[2].tokens[2].text, "x\n# y");
  EXPECT_EQ(statements[3].indent, 2u);
  EXPECT_EQ(statements[3].tokens[0].line, 6u);
  EXPECT_EQ(statements[3].tokens[2].text, "\"#");
}

TEST(PythonText, LinesMayEndAndBeIndentedInEveryWayOfPython) {
  const auto statements = python::read_statements("a = 1 + \\\r\n  2\r\n \tb\n  \f c\n;d \t\f;e");
  ASSERT_EQ(statements.size(), 5u);
  EXPECT_EQ(statements[0].tokens.size(), 5u);
  EXPECT_EQ(statements[1].indent, 8u);
  EXPECT_EQ(statements[1].tokens[0].line, 3u);
  EXPECT_EQ(statements[2].indent, 1u) << "after a form feed, columns start over";
  EXPECT_EQ(statements[4].tokens[0].text, "e");
}

TEST(PythonText, StringsEndAtTheirQuotes) {
  const auto text_of = [](const std::string& text) { return python::read_statements(text)[0].tokens[0].text; };
  EXPECT_EQ(text_of("''"), "");
  EXPECT_EQ(text_of("u\"größe\""), "größe");
  EXPECT_EQ(text_of("'''a'b''c'''"), "a'b''c");
  EXPECT_EQ(text_of(R"('a\\' 'b')"), "a\\");
  EXPECT_EQ(text_of("größe = 1"), "größe");
}

TEST(PythonText, WhatIsNotPythonGivesStatementsToo) {
  const auto count_of = [](const std::string& text) { return python::read_statements(text).size(); };
  EXPECT_EQ(count_of("a = 'b\nc"), 2u) << "a string without an end";
  EXPECT_EQ(count_of("a = '''b\nc"), 1u);
  EXPECT_EQ(count_of("a)]}\nb"), 2u) << "brackets that nothing opened";
  EXPECT_EQ(count_of("[a; b\nc"), 1u) << "a bracket that nothing closes";
  EXPECT_EQ(count_of("a \\ b\nc"), 2u);
}

TEST(PythonConfig, ReadsEveryWayToWriteADefault) {
  const auto config =
      read(code("        self.rope_theta = kwargs.get(\"rope_theta\", 1e4)\n"
                "        self.rms_norm_eps: float = 1e-5\n"
                "        self.hidden_act = 'gelu'; self.norm_topk_prob = False\n"
                "        self.num_attention_heads = kwargs.pop('num_attention_heads', self.hidden_size // 4)\n"));
  ASSERT_TRUE(config);
  EXPECT_EQ(config->stated.rope_theta, 1e4);
  EXPECT_EQ(config->stated.places.at("rope_theta"), "m.py:6");
  EXPECT_EQ(config->stated.rms_norm_eps, 1e-5);
  EXPECT_EQ(config->stated.hidden_act, HiddenAct::gelu);
  EXPECT_EQ(config->stated.norm_topk_prob, false);
  EXPECT_EQ(config->stated.num_attention_heads, SmallModel{}.hidden / 4) << "by the tensors' hidden_size";
  EXPECT_FALSE(config->stated.hidden_size) << "trainers pass it";
  EXPECT_TRUE(config->not_read.empty());
}

TEST(PythonConfig, ParametersStateTheirOwnLine) {
  const auto config = read(
      "class MiniMindConfig:\n"
      "    def __init__(\n"
      "            self,\n"
      "            rope_theta: int = 1e5,\n"
      "            rms_norm_eps=EPS,\n"
      "            **kwargs\n"
      "    ):\n"
      "        self.rope_theta = rope_theta\n"
      "        self.rms_norm_eps = rms_norm_eps\n",
      v2_by_habit());
  ASSERT_TRUE(config);
  EXPECT_EQ(config->stated.rope_theta, 1e5);
  EXPECT_EQ(config->stated.places.at("rope_theta"), "m.py:4");
  EXPECT_EQ(config->not_read, std::vector<std::string>{"rms_norm_eps (m.py:5)"});
}

TEST(PythonConfig, CodeWithoutValuesStatesNothing) {
  for (const std::string body :
       {" pass\n", "\n    rope_theta: float\n    def __init__(self): pass\n", "\n    def __init__: self.x = 1\n",
        "\n    def __init__(]:\n        super().__init__(self, 1, 2)\n", "\n    '' = 1\n    THETA\n"}) {
    const auto config = read("class MiniMindConfig:" + body + "THETA\n" + attention_code("self.q_norm = 1"));
    ASSERT_TRUE(config) << body;
    EXPECT_FALSE(config->stated.rope_theta) << body;
    EXPECT_EQ(config->stated.settings, 1u) << "is_causal, of " << body;
    EXPECT_TRUE(config->not_read.empty()) << body;
  }
}

TEST(PythonConfig, NamesWhatIsNotALiteral) {
  const auto config =
      read(code("        self.rope_theta = THETA\n"
                "        self.rms_norm_eps = 1e-6\n"
                "        if use_moe: self.rms_norm_eps = 1e-5\n"
                "        if use_moe:\n"
                "            self.hidden_act = 'gelu'\n"));
  ASSERT_TRUE(config);
  EXPECT_FALSE(config->stated.rope_theta || config->stated.rms_norm_eps || config->stated.hidden_act);
  EXPECT_EQ(config->not_read,
            (std::vector<std::string>{"hidden_act (m.py:10)", "rms_norm_eps (m.py:8)", "rope_theta (m.py:6)"}));
}

TEST(PythonConfig, IsOfItsOwnGenerationOnly) {
  EXPECT_FALSE(read(code("        self.rms_norm_eps = 1e-6\n"), v2_by_habit())) << "v3's code, v2's tensors";
  EXPECT_FALSE(read(code("        self.rms_norm_eps = 1e-6\n", "pass"))) << "v2's code, v3's tensors";
  EXPECT_FALSE(read(code("        self.rms_norm_eps = 1e-6\n"), small_v1()));
  EXPECT_FALSE(read("x = 1\n"));
  const std::string lm_config =
      "class LMConfig:\n"
      "    def __init__(self, dim=512, n_heads=16, n_kv_heads=8, norm_eps=1e-4):\n"
      "        self.n_heads = n_heads\n"
      "        self.n_kv_heads = n_kv_heads\n"
      "        self.norm_eps = norm_eps\n";
  const auto config = read(lm_config, small_v1());
  ASSERT_TRUE(config);
  EXPECT_EQ(config->stated.family, Family::v1);
  EXPECT_EQ(config->stated.rms_norm_eps, 1e-4);
  EXPECT_EQ(config->stated.places.at("rms_norm_eps"), "m.py:2");
  SmallModel early = small_v1();
  early.k_rows = 8;
  EXPECT_FALSE(read(lm_config, early)) << "4 to 1";
  for (const char* heads : {"self.n_kv_heads = KV\n", "self.n_kv_heads = None\n", "self.n_heads = N\n",
                            "self.n_heads = N\n        self.n_kv_heads = KV\n"}) {
    EXPECT_FALSE(read(lm_config + "        " + heads, small_v1())) << heads;
  }
}

TEST(PythonConfig, TensorsThatShowNoGenerationHaveNoCode) {
  const auto read_with = [](const std::string& name, const std::optional<Shape>& shape, const SmallModel& model = {}) {
    CanonicalTensors canonical = canonical_tensors(model);
    canonical.tensors.erase(name);
    if (shape) canonical.tensors[name] = zeros(*shape);
    const std::string lm_config = "class LMConfig:\n    n_heads = 16\n    n_kv_heads = 8\n";
    const std::string text = model.v1_names ? lm_config : code("        self.x = 1\n");
    return read_python_config({.config = {"m.py", text}, .equations = {}, .trainer = {}}, canonical).has_value();
  };
  EXPECT_TRUE(read_with("model.norm.weight", {}));
  EXPECT_FALSE(read_with("model.embed_tokens.weight", {}));
  EXPECT_FALSE(read_with("model.embed_tokens.weight", Shape{8}));
  EXPECT_TRUE(read_with("model.norm.weight", {}, small_v1()));
  EXPECT_FALSE(read_with("model.layers.0.self_attn.q_proj.weight", {}, small_v1()));
  EXPECT_FALSE(read_with("model.layers.0.self_attn.k_proj.weight", Shape{}, small_v1()));
}

TEST(PythonConfig, ThetaOfTheFirstGenerationIsAFunctionsDefault) {
  const PythonFile config{"LMConfig.py",
                          "class LMConfig:\n"
                          "    def __init__(self, n_heads=16, n_kv_heads=8):\n"
                          "        self.n_heads, self.n_kv_heads = n_heads, n_kv_heads\n"
                          "        self.n_heads = n_heads\n"
                          "        self.n_kv_heads = n_kv_heads\n"};
  const PythonFile model{"model.py",
                         "def precompute_pos_cis(dim: int, end: int, theta: float = 5000.0):\n    return 1\n"};
  const auto read =
      read_python_config({.config = config, .equations = model, .trainer = {}}, canonical_tensors(small_v1()));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->stated.rope_theta, 5000);
  EXPECT_EQ(read->stated.places.at("rope_theta"), "model.py:1");
  const auto read_text = [&](const std::string& text) {
    return read_python_config({.config = {"m.py", config.text + text}, .equations = {}, .trainer = {}},
                              canonical_tensors(small_v1()));
  };
  EXPECT_FALSE(read_text("def precompute_pos_cis(dim, end):\n    return 1\n")->stated.rope_theta);
  const auto early = read_text("        self.rope_theta = 5e5\n        self.max_seq_len = 512\n" + model.text);
  EXPECT_EQ(early->stated.family, Family::v2_early);
  EXPECT_EQ(early->stated.rope_theta, 5e5) << "the function is called with it";
  EXPECT_EQ(early->stated.places.at("max_position_embeddings"), "m.py:7");
}

// It is a literal of the class FeedForward, whose equations are known with any activation of torch.nn.functional.
TEST(PythonConfig, TheActivationOfTheFirstGenerationsIsACall) {
  const auto read = [](const std::string& call, const std::string& product = " * ", const std::string& more = "") {
    const PythonFile config{"LMConfig.py",
                            "class LMConfig:\n"
                            "    def __init__(self, n_heads=16, n_kv_heads=8):\n"
                            "        self.n_heads = n_heads\n"
                            "        self.n_kv_heads = n_kv_heads\n" +
                                more};
    const std::string model =
        "class FeedForward(nn.Module):\n"
        "    def __init__(self, dim: int, hidden_dim: int, multiple_of: int, dropout: float):\n"
        "        super().__init__()\n"
        "        if hidden_dim is None:\n"
        "            hidden_dim = 4 * dim\n"
        "            hidden_dim = int(2 * hidden_dim / 3)\n"
        "            hidden_dim = multiple_of * ((hidden_dim + multiple_of - 1) // multiple_of)\n"
        "        self.w1 = nn.Linear(dim, hidden_dim, bias=False)\n"
        "        self.w2 = nn.Linear(hidden_dim, dim, bias=False)\n"
        "        self.w3 = nn.Linear(dim, hidden_dim, bias=False)\n"
        "        self.dropout = nn.Dropout(dropout)\n"
        "    def forward(self, x):\n"
        "        return self.dropout(self.w2(F." +
        call + "(self.w1(x))" + product + "self.w3(x)))\n";
    return read_python_config({.config = config, .equations = PythonFile{"model.py", model}, .trainer = {}},
                              canonical_tensors(small_v1()));
  };
  EXPECT_EQ(read("silu")->stated.hidden_act, HiddenAct::silu);
  EXPECT_EQ(read("gelu")->stated.hidden_act, HiddenAct::gelu);
  EXPECT_EQ(read("gelu")->stated.places.at("hidden_act"), "model.py:13");
  EXPECT_TRUE(read("gelu")->edited.empty());
  EXPECT_FALSE(read("tanh")->stated.hidden_act);
  EXPECT_EQ(read("gelu", " * ", "        self.hidden_act = 'relu'\n")->stated.hidden_act, HiddenAct::gelu)
      << "nothing reads the setting";
  EXPECT_EQ(read("tanh")->edited, std::vector<std::string>{"FeedForward (model.py:1)"});
  EXPECT_FALSE(read("gelu", " + ")->stated.hidden_act) << "other equations, which are not computed";
}

// A default that a trainer does not use says nothing about its checkpoints.
TEST(PythonConfig, TheTrainersArgumentsCountInsteadOfDefaults) {
  const std::string settings =
      "        self.rope_theta = kwargs.get('rope_theta', 1e6)\n"
      "        self.rms_norm_eps = kwargs.get('rms_norm_eps', 1e-6)\n"
      "        self.hidden_act = kwargs.get('hidden_act', 'silu')\n"
      "        self.max_position_embeddings = kwargs.get('max_position_embeddings', 32768)\n";
  const std::string trainer =
      "from model import MiniMindConfig, x\n"
      "class MiniMindConfig: pass\n"
      "if __name__ == '__main__':\n"
      "    student = MiniMindConfig(hidden_size=args.hidden_size, use_moe=bool(args.use_moe),\n"
      "                             rope_theta=2 * 5000, hidden_act=args.act, max_position_embeddings=340,\n"
      "                             x=[1, {2: (3)}], head_dim=4)\n"
      "    teacher = MiniMindConfig(rms_norm_eps=1e-3)\n";
  const auto config =
      read_python_config({.config = {"m.py", code(settings)}, .equations = {}, .trainer = PythonFile{"t.py", trainer}},
                         canonical_tensors(SmallModel()));
  ASSERT_TRUE(config);
  EXPECT_EQ(config->stated.rope_theta, 10000);
  EXPECT_EQ(config->stated.places.at("rope_theta"), "t.py:5");
  EXPECT_EQ(config->stated.rms_norm_eps, 1e-6) << "the teacher is not saved";
  EXPECT_EQ(config->stated.max_position_embeddings, 32768) << "the length of samples";
  EXPECT_FALSE(config->stated.hidden_act);
  EXPECT_EQ(config->not_read, (std::vector<std::string>{"hidden_act (t.py:5)"}));
  EXPECT_EQ(config->stated.head_dim, 4u);
  const auto open = read_python_config({.config = {"m.py", code(settings)},
                                        .equations = {},
                                        .trainer = PythonFile{"t.py", "MiniMindConfig(rope_theta=7, x=[1"}},
                                       canonical_tensors(SmallModel()));
  EXPECT_EQ(open->stated.rope_theta, 7) << "a call that nothing closes";
}

TEST(PythonConfig, TrainersAreKnownByTheNamesOfTheirCheckpoints) {
  const auto has = [](const std::string& checkpoint, const std::string& trainer) {
    const auto paths = trainers_of(checkpoint);
    return std::find(paths.begin(), paths.end(), trainer) != paths.end();
  };
  EXPECT_EQ(trainers_of("full_sft_768_moe.pth").front(), "trainer/train_full_sft_768_moe.py");
  EXPECT_TRUE(has("full_sft_768_moe.pth", "trainer/train_full_sft.py"));
  EXPECT_TRUE(has("pretrain_512.pth", "train_pretrain.py"));
  EXPECT_TRUE(has("pretrain_512.pth", "1-pretrain.py"));
  EXPECT_TRUE(has("rlhf_512.pth", "train_dpo.py"));
  EXPECT_TRUE(has("full_dist_768.pth", "trainer/train_distillation.py"));
  EXPECT_TRUE(has("reason_768.pth", "trainer/train_distill_reason.py"));
  EXPECT_FALSE(has("full_sft_768.pth", "trainer/train_pretrain.py"));
  EXPECT_TRUE(trainers_of(".pth").empty());
}

TEST(PythonConfig, RejectsAModelThatIsNotCausal) {
  const std::string error =
      error_of([] { read(code("        self.x = 1\n", "self.is_causal = False; self.q_norm = 1")); });
  EXPECT_NE(error.find("m.py: is_causal is false, expected true: dLM"), std::string::npos) << error;
  const std::string by_config = error_of([] {
    read(code("        self.is_causal = kwargs.get('is_causal', False)\n",
              "self.is_causal = config.is_causal; self.q_norm = 1"));
  });
  EXPECT_NE(by_config.find("dLM"), std::string::npos) << by_config;
  EXPECT_EQ(read(code("        self.x = 1\n"))->stated.is_causal, true);
}

TEST(PythonConfig, NamesEquationsThatNoVersionHas) {
  const auto edited = read(code("        self.x = 1\n", "self.q_norm = 1; self.f = [F, F.silu, 1]"))->edited;
  ASSERT_EQ(edited.size(), 1u) << "this test's Attention";
  EXPECT_EQ(edited[0], "Attention (m.py:8)");
}

TEST(PythonText, LayoutAndCommentsMakeNoDifference) {
  const auto spelled = [](const std::string& text) {
    return python::spelling(*python::find_definition(python::read_statements(text), "f"));
  };
  EXPECT_EQ(spelled("def f(x):\n  \"\"\"doc\"\"\"\n  return (x +  # why\n    1)\n"),
            spelled("def f( x ):\n\n    return (x + 1)\n"));
  EXPECT_NE(spelled("def f(x):\n  return x + 1\n"), spelled("def f(x):\n  return x + 2\n"));
  EXPECT_NE(spelled("def f(x):\n  pass\n"), spelled("def f(x):\n  return\n"));
}

TEST(PythonConfig, TheCodeAddsOnlyWhatTheConfigOmits) {
  const std::string text =
      R"({"rope_theta": 7, "eos_token_id": 3, "intermediate_size": null, "multiple_of": 15,
          "inference_rope_scaling": true, "rope_scaling": {"type": "linear", "factor": 2}})";
  StatedConfig code = parse_config_json(text, "code");
  code.places["rope_theta"] = "code:5";
  StatedConfig empty;
  add_missing(empty, code);
  EXPECT_EQ(empty.rope_theta, 7);
  EXPECT_EQ(empty.places.at("rope_theta"), "code:5");
  EXPECT_EQ(empty.eos_token_id, std::vector<std::int32_t>{3});
  EXPECT_EQ(empty.places.at("eos_token_id"), "code") << "no line is known";
  EXPECT_TRUE(empty.intermediate_size_is_null);
  EXPECT_EQ(empty.multiple_of, 15u);
  EXPECT_TRUE(empty.rope_scaling);
  for (const char* size : {R"("intermediate_size": 6)", R"("intermediate_size": null)"}) {
    StatedConfig full = parse_config_json(
        "{\"rope_theta\": 8, \"eos_token_id\": 4, \"inference_rope_scaling\": false, " + std::string(size) + "}",
        "config");
    add_missing(full, code);
    EXPECT_EQ(full.rope_theta, 8);
    EXPECT_EQ(full.eos_token_id, std::vector<std::int32_t>{4});
    EXPECT_EQ(full.multiple_of, 64u);
    EXPECT_FALSE(full.rope_scaling) << "inference_rope_scaling decides";
  }
}

}  // namespace
}  // namespace minimind
