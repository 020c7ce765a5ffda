#include "tools/openai/text_model.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/grammar/gbnf.h"
#include "tests/support/temporary_folder.h"
#include "tools/openai/answer_body.h"
#include "tools/openai/request_error.h"

namespace minimind {
namespace {

const std::string demo_folder = MINIMIND_SOURCE_DIR "/weights/demo";

GenerationArguments arguments_of(const std::string& model) {
  GenerationArguments arguments;
  arguments.checkpoint.model = model;
  arguments.run.quiet = true;
  arguments.run.threads = 1;
  return arguments;
}

const TextModel& poet() {
  static const TextModel model(arguments_of(demo_folder + "/model.pth"), "");
  return model;
}

Request chat_of(const std::string& content) {
  Request request = request_with({});
  request.chat = true;
  request.max_tokens = 4;
  request.messages = {{.role = Role::user, .content = content}};
  return request;
}

Request completion_of(const std::string& text) {
  Request request = request_with({});
  request.prompts = {{.text = text}};
  request.max_tokens = 4;
  return request;
}

// The field that an error of a request names, and its message.
std::pair<std::string, std::string> error_about(const Request& request, const TextModel& model = poet()) {
  try {
    model.tasks(request, 0, 0);
  } catch (const RequestError& error) {
    return {error.param(), error.what()};
  }
  return {};
}

TEST(TextModel, IsKnownByTheNameOfItsFileOrFolder) {
  const TemporaryFolder folder;
  const auto names_of_copy = [&](const std::string& name, const std::string& given) {
    const std::filesystem::path path = folder.path() + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::filesystem::copy_file(demo_folder + "/model.pth", path, std::filesystem::copy_options::skip_existing);
    for (const char* const part : {"tokenizer.json", "tokenizer_config.json"}) {
      std::filesystem::copy_file(demo_folder + "/" + part, path.parent_path() / part,
                                 std::filesystem::copy_options::skip_existing);
    }
    return TextModel(arguments_of(folder.path() + "/" + given), "").names();
  };
  const std::string path = folder.path() + "/out/full_sft_192.pth";
  EXPECT_EQ(names_of_copy("out/full_sft_192.pth", "out/full_sft_192.pth"),
            (std::vector<std::string>{"full_sft_192", "full_sft_192", "full_sft_192.pth", path, "minimind"}));
  EXPECT_EQ(names_of_copy("mine/model.pth", "mine/model.pth").front(), "mine");
  EXPECT_EQ(names_of_copy("hf/pytorch_model.bin", "hf/pytorch_model.bin").front(), "hf");
  EXPECT_EQ(names_of_copy("demo/model.pth", "demo/model.pth").front(), "minimind-poet");
  EXPECT_EQ(TextModel(arguments_of(demo_folder + "/model.pth"), "", "given").names(),
            std::vector<std::string>{"given"});
}

TEST(TextModel, IsKnownByTheNameOfAFolderThatEndsWithASlash) {
  const TemporaryFolder folder;
  std::filesystem::copy(MINIMIND_SOURCE_DIR "/tests/golden/hf-llama", folder.path() + "/mine");
  GenerationArguments arguments = arguments_of(folder.path() + "/mine/");
  arguments.tokenizer = MINIMIND_SOURCE_DIR "/tests/golden_tokenizer";
  const std::vector<std::string> names = TextModel(arguments, "").names();
  EXPECT_EQ(names, (std::vector<std::string>{"mine", "mine", "mine", folder.path() + "/mine", "minimind"}));
}

TEST(TextModel, HasTheNameOfItsFileIfTheFolderIsTheCurrentOne) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(demo_folder);
  for (const char* const given : {"model.pth", "./model.pth"}) {
    EXPECT_EQ(TextModel(arguments_of(given), "").names().front(), "model") << given;
  }
  std::filesystem::current_path(before);
}

TEST(TextModel, KnowsTheTypeOfItsWeights) {
  EXPECT_EQ(poet().facts().type, "f16");
  GenerationArguments arguments = arguments_of(demo_folder + "/model.pth");
  arguments.run.type = "q8_0";
  EXPECT_EQ(TextModel(arguments, "").facts().type, "q8_0");
}

TEST(TextModel, EstimatesTheMemoryOfItsWeights) {
  GenerationArguments arguments = arguments_of(demo_folder + "/model.pth");
  const std::size_t stored = weight_bytes_of(arguments);
  EXPECT_EQ(poet().facts().bytes, stored);
  const auto bytes_as = [&](const std::string& type) {
    arguments.run.type = type;
    return weight_bytes_of(arguments);
  };
  EXPECT_EQ(bytes_as("f32"), 2 * bytes_as("f16"));
  EXPECT_EQ(bytes_as("bf16"), bytes_as("f16"));
  EXPECT_LT(bytes_as("q8_0"), bytes_as("f16"));
  EXPECT_LT(bytes_as("q4_0"), bytes_as("q8_0"));
}

TEST(TextModel, NamesTheFieldOfARequestThatDoesNotFit) {
  Request tokens = completion_of("");
  tokens.prompts = {{.tokens = {1, 999'999}}};
  EXPECT_EQ(error_about(tokens).first, "prompt");
  Request longer = completion_of("a");
  longer.prompts[0].tokens.assign(poet().llm().positions, 5);
  EXPECT_EQ(error_about(longer).first, "prompt");
  EXPECT_NE(error_about(longer).second.find("one fewer than the maximum context length"), std::string::npos);
  Request small = completion_of("床前明月光，疑是地上霜。");
  small.context = 3;
  EXPECT_NE(error_about(small).second.find("expected 1 to 2"), std::string::npos) << error_about(small).second;
  EXPECT_EQ(error_about(completion_of("")).first, "") << "the start of a text";
  Request biased = completion_of("a");
  biased.sampling.logit_bias = {{static_cast<std::int32_t>(poet().llm().config.vocab_size), 1}};
  EXPECT_EQ(error_about(biased).first, "logit_bias");
  Request hot = completion_of("a");
  hot.sampling.temperature = -1;
  EXPECT_EQ(error_about(hot).first, "temperature");
}

TEST(TextModel, RejectsTextsThatTakeTooMuchMemoryTogether) {
  Request request = completion_of("a");
  request.stop.assign(64, std::string(1000, 'x'));
  request.best_of = 1024;
  EXPECT_EQ(error_about(request), (std::pair<std::string, std::string>{}));
  request.prompts.assign(8, request.prompts[0]);
  EXPECT_EQ(error_about(request).first, "prompt");
  EXPECT_NE(error_about(request).second.find("expected fewer or shorter prompts"), std::string::npos);
}

TEST(TextModel, RejectsTextsThatMayHaveTooManyLogProbabilities) {
  Request request = completion_of("");
  request.prompts[0].tokens.assign(1000, 5);
  request.max_tokens = 24;
  request.n = request.best_of = 128;
  request.prompt_logprobs = 15;  // 128 * 1024 * 16: the most
  EXPECT_EQ(error_about(request), (std::pair<std::string, std::string>{}));
  ++request.max_tokens;
  EXPECT_EQ(error_about(request).first, "prompt_logprobs");
  EXPECT_NE(error_about(request).second.find("may have 2099200 log-probabilities"), std::string::npos);
  request.prompt_logprobs.reset();
  request.logprobs = 15;  // only of the answers
  EXPECT_EQ(error_about(request), (std::pair<std::string, std::string>{}));
  request.prompts.assign(50, request.prompts[0]);
  EXPECT_EQ(error_about(request).first, "logprobs");
}

TEST(TextModel, NamesTheFieldOfTextsThatAreTooManyTogether) {
  Request chat = chat_of("a");
  chat.n = chat.best_of = 4096;
  chat.stop.assign(64, std::string(1000, 'x'));
  EXPECT_EQ(error_about(chat).first, "messages");
  Request best = completion_of("a");
  best.prompts.push_back({.text = "b"});
  best.best_of = 128;  // each text has the log-probabilities that it is chosen by
  best.max_tokens = 10'000;
  EXPECT_EQ(error_about(best).first, "best_of");
}

// DRY makes a difference, and the same one if the prompt is read with the text.
TEST(TextModel, PreparesThePenaltiesOfAPrompt) {
  Request request = completion_of("a b c d e f, a b c d e f, a b c");
  request.max_tokens = 24;
  request.sampling.dry.multiplier = 9;
  request.sampling.dry.sequence_breakers = {",", "\n"};
  request.n = request.best_of = 2;
  const std::vector<TextTask> tasks = poet().tasks(request, 1, 0);
  ASSERT_TRUE(tasks[0].options.penalties);
  EXPECT_EQ(tasks[0].options.penalties, tasks[1].options.penalties);
  const auto text_of = [&](const GenerateOptions& options) {
    const LLM& llm = poet().llm();
    Forward forward = llm.forward(64, llm.positions);
    Context context(llm.config, tasks[0].capacity);
    return generate(
               forward, context, llm.tokenizer_or_null(), tasks[0].prompt, options, [](std::string_view) {}, false)
        .tokens;
  };
  GenerateOptions later = tasks[0].options, off = later;
  later.penalties = off.penalties = nullptr;
  off.sampling.dry.multiplier = 0;
  const auto text = text_of(tasks[0].options);
  EXPECT_EQ(text, text_of(later));
  EXPECT_NE(text, text_of(off));
}

TEST(TextModel, EachPromptHasPenaltiesOfItsOwn) {
  Request request = completion_of("a b a b");
  request.prompts.push_back({.text = "a"});
  request.sampling.dry.multiplier = 9;
  const std::vector<TextTask> tasks = poet().tasks(request, 1, 0);
  ASSERT_TRUE(tasks[0].options.penalties && tasks[1].options.penalties);
  EXPECT_NE(tasks[0].options.penalties, tasks[1].options.penalties);
}

TEST(TextModel, GivesEachTextItsSeed) {
  Request request = completion_of("a");
  request.prompts.push_back({.text = "b"});
  request.n = request.best_of = 2;
  const auto seeds = [&] {
    std::vector<std::uint64_t> all;
    for (const TextTask& task : poet().tasks(request, 100, 0)) all.push_back(task.options.sampling.seed);
    return all;
  };
  EXPECT_EQ(seeds(), (std::vector<std::uint64_t>{100, 101, 102, 103}));
  request.seed = 7;
  EXPECT_EQ(seeds(), (std::vector<std::uint64_t>{7, 8, 9, 10}));
}

TEST(TextModel, ScoresTheTextsThatItChoosesFrom) {
  Request request = completion_of("a");
  request.best_of = 2;
  EXPECT_EQ(poet().tasks(request, 0, 0).front().options.scores, 0u);
  request.logprobs = 3;
  EXPECT_EQ(poet().tasks(request, 0, 0).front().options.scores, 3u);
  EXPECT_FALSE(poet().tasks(request, 0, 0).front().options.score_prompt);
  request.echo = true;
  EXPECT_TRUE(poet().tasks(request, 0, 0).front().options.score_prompt);
  request.ignore_eos = true;
  EXPECT_TRUE(poet().tasks(request, 0, 0).front().options.end_tokens.empty());
}

// A template of "U:...", whose answers start with a thought if thinking is on.
class ThinkingModel : public testing::Test {
 protected:
  static constexpr const char* source =
      "{% for message in messages %}{{ message.role[0] | upper }}:{{ message.content }}\n{% endfor %}A:"
      "{% if open_thinking %}<think>\n{% endif %}";

  Request continued(const std::string& content, std::optional<std::string> reasoning) const {
    Request request = chat_of("hi");
    request.continues = true;
    request.messages.push_back({.role = Role::assistant, .content = content, .reasoning = std::move(reasoning)});
    return request;
  }
  std::string prompt_of(const Request& request) const { return model_.chat_prompt(request, 0).bytes; }

  const TemporaryFolder folder_;
  const TextModel model_{arguments_of(demo_folder + "/model.pth"), folder_.write("template.jinja", source)};
};

TEST_F(ThinkingModel, ContinuesAnAnswerOrItsThought) {
  EXPECT_EQ(prompt_of(continued("part", std::nullopt)), "U:hi\nA:part");
  EXPECT_EQ(prompt_of(continued("", "I thi")), "U:hi\nA:<think>\nI thi");
  EXPECT_EQ(prompt_of(continued("part", "done")), "U:hi\nA:<think>\ndone\n</think>\n\npart");
  EXPECT_EQ(model_.tasks(continued("", "I thi"), 0, 0).front().thinks, ThinkState::open);
  EXPECT_EQ(model_.tasks(continued("part", "done"), 0, 0).front().thinks, ThinkState::none);
}

TEST_F(ThinkingModel, AGrammarIsForAnswersWithoutAThought) {
  Request request = chat_of("hi");
  request.grammar = std::make_shared<const Grammar>(parse_grammar("root ::= \"a\"", "test"));
  EXPECT_EQ(error_about(request, model_), (std::pair<std::string, std::string>{}));
  request.think = true;
  EXPECT_EQ(error_about(request, model_).first, "response_format");
  request.grammar_param = "grammar";
  EXPECT_EQ(error_about(request, model_).first, "grammar");
  EXPECT_NE(error_about(request, model_).second.find("turn thinking off"), std::string::npos);
}

TEST_F(ThinkingModel, AThoughtNeedsATemplateWithThoughts) {
  const TextModel plain(arguments_of(demo_folder + "/model.pth"),
                        folder_.write("plain.jinja", "{{ messages[0].content }}"));
  const auto [param, message] = error_about(continued("", "I thi"), plain);
  EXPECT_EQ(param, "continue_final_message");
  EXPECT_NE(message.find("the chat template has no thoughts"), std::string::npos);
}

TEST_F(ThinkingModel, ATemplateThatFailsIsAnErrorAboutTheMessages) {
  const TextModel strict(arguments_of(demo_folder + "/model.pth"),
                         folder_.write("strict.jinja", "{{ raise_exception('no ' + messages[0].content) }}"));
  const auto [param, message] = error_about(chat_of("poems"), strict);
  EXPECT_EQ(param, "messages");
  EXPECT_NE(message.find("no poems"), std::string::npos) << message;
}

TEST(TextModel, ASingleCallEndsAnAnswerWithTools) {
  Request request = chat_of("hi");
  request.calls = CallRule::single;
  EXPECT_TRUE(poet().tasks(request, 0, 0).front().options.stop.empty());
  request.tools = R"([{"type": "function", "function": {"name": "f"}}])";
  EXPECT_EQ(poet().tasks(request, 0, 0).front().options.stop, std::vector<std::string>{"</tool_call>"});
  request.tools.clear();  // as with function_call "none", which an answer may still disobey
  request.function_call = true;
  EXPECT_EQ(poet().tasks(request, 0, 0).front().options.stop, std::vector<std::string>{"</tool_call>"});
  request.grammar = std::make_shared<const Grammar>(parse_grammar("root ::= \"</tool_call>a\"", "test"));
  EXPECT_TRUE(poet().tasks(request, 0, 0).front().options.stop.empty())
      << "a text that a grammar constrains has no calls";
}

TEST(TextModel, CountsTheTokensOfAThoughtByItsTags) {
  const std::int32_t start = *poet().tokenizer().id_of("<think>"), end = *poet().tokenizer().id_of("</think>");
  TextTask task;
  EXPECT_EQ(thought_tokens(poet(), task, {}), 0u);
  EXPECT_EQ(thought_tokens(poet(), task, {7, end, 8}), 0u) << "no thought has begun";
  EXPECT_EQ(thought_tokens(poet(), task, {start, 7, end, 8}), 3u);
  task.thinks = ThinkState::open;
  EXPECT_EQ(thought_tokens(poet(), task, {7, end, 8}), 2u);
  EXPECT_EQ(thought_tokens(poet(), task, {7, 8}), 2u) << "it has no end";
}

TEST(TextModel, TextsWithoutTokensAreAllAsGood) {
  Request request = completion_of("a");
  request.best_of = 2;
  const Generated none;
  EXPECT_EQ(chosen_texts(request, {&none, &none}), std::vector<std::size_t>{0});
}

TEST(TextModel, AModelWithoutTagsHasNoThoughtsAndNoCallsThatAreChecked) {
  const TemporaryFolder folder;
  for (const char* const name : {"tokenizer.json", "tokenizer_config.json"}) {
    std::string text = read_whole_file(demo_folder + "/" + name);
    for (const char* const tag : {"think>", "tool_call>"}) {
      for (std::size_t at = text.find(tag); at != std::string::npos; at = text.find(tag)) text[at] = 'T';
    }
    folder.write(name, text);
  }
  GenerationArguments arguments = arguments_of(demo_folder + "/model.pth");
  arguments.tokenizer = folder.path();
  const TextModel model(arguments, "");
  TextTask task;
  task.thinks = ThinkState::open;
  EXPECT_EQ(thought_tokens(model, task, {7, 8}), 0u);
  Request request = chat_of("hi");
  request.call_grammar = std::make_shared<const Grammar>(parse_grammar("root ::= \"a\"", "test"));
  const auto [param, message] = error_about(request, model);
  EXPECT_EQ(param, "tools");
  EXPECT_NE(message.find("require a tokenizer with the token <tool_call>"), std::string::npos) << message;
  request.grammar = std::exchange(request.call_grammar, nullptr);
  request.calls = CallRule::forced;
  EXPECT_EQ(error_about(request, model), (std::pair<std::string, std::string>{}));
}

// A tokenizer without the tokens around calls can only force them.
TEST(TextModel, StrictCallsNeedTheTokenOfCalls) {
  GenerationArguments arguments = arguments_of(MINIMIND_SOURCE_DIR "/tests/golden/v3-dense/model.pth");
  arguments.tokenizer = MINIMIND_SOURCE_DIR "/tests/golden_tokenizer";
  const TextModel model(arguments, "");
  Request request = chat_of("hi");
  request.call_grammar = std::make_shared<const Grammar>(parse_grammar("root ::= \"a\"", "test"));
  const auto [param, message] = error_about(request, model);
  EXPECT_FALSE(param.empty()) << message;
}

}  // namespace
}  // namespace minimind
