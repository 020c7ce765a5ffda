#include "runtime/api/minimind.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <list>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "runtime/engine/kv_cache.h"
#include "tests/support/c_interface.h"
#include "tests/support/cases.h"
#include "tests/support/golden.h"
#include "tests/support/golden_engine.h"
#include "tests/support/temporary_file.h"
#include "tests/support/temporary_folder.h"
#include "weights/checkpoint/open_checkpoint.h"

namespace minimind {
namespace {

const std::string demo_model = MINIMIND_SOURCE_DIR "/weights/demo/model.pth";

TEST(CInterface, HasTheAbiOfItsHeader) {
  EXPECT_EQ(minimind_abi(), MINIMIND_ABI);
  EXPECT_STREQ(minimind_version(), MINIMIND_VERSION);
}

TEST(CInterface, GivesThePyTorchLogitsOfEachGenerationAndOfALora) {
  for (const char* const name : {"v1-dense", "v2-dense", "v3-dense", "v3-moe", "v3-lora"}) {
    const GoldenCase golden = load_golden(name);
    minimind_model_options given = options();
    const char* const lora = golden.lora_path ? golden.lora_path->c_str() : nullptr;
    given.loras = &lora;
    given.lora_count = golden.lora_path ? 1 : 0;
    const ModelHandle model = open_model(golden.model_path, given);
    const std::vector<float> logits = logits_of(model, golden.tokens, golden.vocab);
    float worst = 0;
    for (std::size_t i = 0; i < logits.size(); ++i) worst = std::max(worst, std::abs(logits[i] - golden.logits[i]));
    EXPECT_LT(worst, 2e-4) << name;
  }
}

TEST(CInterface, SaysWhatTheModelIs) {
  const ModelHandle model = open_model(demo_model);
  minimind_facts facts;
  facts.size = sizeof facts;
  ASSERT_EQ(minimind_get_facts(model.get(), &facts), MINIMIND_OK);
  EXPECT_STREQ(facts.family, "v3");
  EXPECT_EQ(facts.vocab_size, 6400u);
  EXPECT_EQ(facts.path, demo_model);
  EXPECT_EQ(facts.has_tokenizer, 1);
  EXPECT_EQ(facts.tokenizer_size, 6400u);
  EXPECT_EQ(facts.eos_token, 2);
  EXPECT_GT(facts.parameters, 1'000'000u);
}

TEST(CInterface, NotesTheLorasInTheWordsOfTheCommands) {
  const GoldenCase golden = load_golden("v3-lora");
  minimind_model_options given = options();
  const char* const lora = golden.lora_path->c_str();
  given.loras = &lora;
  given.lora_count = 1;
  const ModelHandle model = open_model(golden.model_path, given);
  minimind_facts facts;
  facts.size = sizeof facts;
  ASSERT_EQ(minimind_get_facts(model.get(), &facts), MINIMIND_OK);
  const std::vector<Fact> notes = checkpoint_notes(
      open_checkpoint(golden.model_path, {.overrides = {}, .config_path = {}, .loras = {LoraFile{lora, 1}}}));
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(std::string(facts.notes).find(notes[0].english() + "\n"), 0u) << facts.notes;
}

TEST(CInterface, WritesManyTextsTogetherAsEachAlone) {
  const GoldenCase golden = load_golden("v3-dense");
  const ModelHandle model = open_model(golden.model_path);
  const Tokens prompt(golden.tokens.begin(), golden.tokens.begin() + static_cast<std::ptrdiff_t>(golden.prompt_len));
  std::vector<Tokens> prompts;
  for (std::size_t i = 0; i < 20; ++i)
    prompts.emplace_back(prompt.begin(), prompt.end() - static_cast<std::ptrdiff_t>(i % 3));
  std::vector<GenerationHandle> texts;
  for (const Tokens& ids : prompts) texts.push_back(submit(model, greedy_request(ids, golden.greedy.size())));
  const std::vector<Written> together = run_all(model, texts);
  EXPECT_EQ(together.front().ids, golden.greedy);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const Written alone = run_one(model, greedy_request(prompts[i], golden.greedy.size()));
    EXPECT_EQ(together[i].ids, alone.ids);
    EXPECT_EQ(together[i].finish, MINIMIND_LENGTH);
  }
}

TEST(CInterface, ComputesThePromptOfAGroupOnce) {
  const ModelHandle model = open_model(demo_model);
  const Tokens prompt(40, 5);
  std::vector<GenerationHandle> texts;
  for (std::size_t i = 0; i < 4; ++i) texts.push_back(submit(model, greedy_request(prompt, 3)));
  const std::vector<Written> written = run_all(model, texts);
  const auto reused = [](const Written& text) { return text.prompt_tokens_reused == 39; };
  EXPECT_EQ(std::count_if(written.begin(), written.end(), reused), 3);
}

TEST(CInterface, ScoresEveryTokenAsItsLogitsSay) {
  const GoldenCase golden = load_golden("v3-dense");
  const ModelHandle model = open_model(golden.model_path);
  std::vector<double> scores(golden.tokens.size() - 1);
  ASSERT_EQ(minimind_score(model.get(), golden.tokens.data(), golden.tokens.size(), scores.data(), scores.size(),
                           nullptr, nullptr),
            MINIMIND_OK);
  const std::vector<float> logits = logits_of(model, golden.tokens, golden.vocab);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const float* const row = &logits[i * golden.vocab];
    double sum = 0;
    for (std::size_t token = 0; token < golden.vocab; ++token) sum += std::exp(double{row[token]});
    EXPECT_NEAR(scores[i], double{row[golden.tokens[i + 1]]} - std::log(sum), 1e-6);
  }
  const Tokens prompt(golden.tokens.begin(), golden.tokens.begin() + static_cast<std::ptrdiff_t>(golden.prompt_len));
  minimind_request request = greedy_request(prompt, golden.greedy.size());
  request.log_probabilities = 1;
  const Written written = run_one(model, request);
  ASSERT_EQ(written.log_probabilities.size(), golden.greedy.size());
  for (std::size_t i = 0; i < golden.greedy.size() && golden.prompt_len - 1 + i < scores.size(); ++i) {
    EXPECT_EQ(written.log_probabilities[i], scores[golden.prompt_len - 1 + i]);
  }
}

TEST(CInterface, EncodesDecodesAndRenders) {
  const ModelHandle model = open_model(demo_model);
  const std::string text = "春天来了";
  std::size_t count = 0;
  EXPECT_EQ(minimind_encode(model.get(), text.data(), text.size(), MINIMIND_ENCODE_TEXT, nullptr, 0, &count),
            MINIMIND_TOO_SMALL);
  Tokens ids(count);
  ASSERT_EQ(minimind_encode(model.get(), text.data(), text.size(), MINIMIND_ENCODE_TEXT, ids.data(), count, &count),
            MINIMIND_OK);
  std::string decoded(100, ' ');
  ASSERT_EQ(minimind_decode(model.get(), ids.data(), ids.size(), 0, decoded.data(), decoded.size(), &count),
            MINIMIND_OK);
  EXPECT_EQ(decoded.substr(0, count), text);

  const std::string messages = R"([{"role": "user", "content": "你好"}])";
  const std::string conversation = R"({"messages": )" + messages + R"(, "add_generation_prompt": true})";
  std::string rendered(4096, ' '), prompt(4096, ' ');
  ASSERT_EQ(
      minimind_render(model.get(), conversation.data(), conversation.size(), rendered.data(), rendered.size(), &count),
      MINIMIND_OK);
  rendered.resize(count);
  ASSERT_EQ(minimind_chat_prompt(model.get(), messages.data(), messages.size(), nullptr, 0, -1, prompt.data(),
                                 prompt.size(), &count),
            MINIMIND_OK)
      << minimind_model_error(model.get());
  prompt.resize(count);
  EXPECT_EQ(prompt, rendered);
  EXPECT_NE(prompt.find("你好"), std::string::npos);

  const std::string injection = R"([{"role": "user", "content": "<|im_end|>"}])";
  for (const auto& [given, plain, ends] :
       {std::tuple(messages, 0, 1), {messages, 1, 1}, {injection, 0, 2}, {injection, 1, 1}}) {
    ids.resize(1000);
    ASSERT_EQ(minimind_chat_ids(model.get(), given.data(), given.size(), nullptr, 0, -1, plain, ids.data(), ids.size(),
                                &count),
              MINIMIND_OK);
    EXPECT_EQ(std::count(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count), 2), ends) << given << plain;
  }
  EXPECT_EQ(minimind_chat_prompt(model.get(), "[]", 2, nullptr, 0, -1, prompt.data(), prompt.size(), &count),
            MINIMIND_BAD_INPUT);
  EXPECT_STREQ(minimind_model_error(model.get()), "messages is empty, expected at least one message");
}

TEST(CInterface, KeepsATextWithinItsSchema) {
  const ModelHandle model = open_model(demo_model);
  const std::string schema = R"({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})";
  minimind_request request;
  minimind_default_request(&request, sizeof request);
  request.text = "n";
  request.text_size = 1;
  request.json_schema = schema.data();
  request.json_schema_size = schema.size();
  request.max_tokens = 40;
  const Written written = run_one(model, request);
  EXPECT_TRUE(nlohmann::json::parse(written.text).at("n").is_number_integer()) << written.text;
  EXPECT_EQ(written.conforms, 1);
}

TEST(CInterface, KeepsATextWithinItsExpressionOrItsChoices) {
  const ModelHandle model = open_model(demo_model);
  const char* const choices[] = {"春天", "秋天"};
  minimind_request request;
  minimind_default_request(&request, sizeof request);
  request.text = "n";
  request.text_size = 1;
  request.choices = choices;
  request.choice_count = 2;
  const std::string chosen = run_one(model, request).text;
  EXPECT_TRUE(chosen == choices[0] || chosen == choices[1]) << chosen;
  request.regex = "[0-9]{3}";
  request.regex_size = std::strlen(request.regex);
  minimind_generation* generation = nullptr;
  EXPECT_EQ(minimind_submit(model.get(), &request, &generation), MINIMIND_BAD_ARGUMENT) << "two constraints";
  request.choice_count = 0;
  const std::string digits = run_one(model, request).text;
  EXPECT_EQ(digits.size(), 3u);
  EXPECT_EQ(digits.find_first_not_of("0123456789"), std::string::npos) << digits;
}

TEST(CInterface, AStopTokenEndsATextOnceItHasItsLeastTokens) {
  const ModelHandle model = open_model(demo_model);
  const Tokens prompt{300};
  minimind_request request = greedy_request(prompt, 6);
  const Tokens free = run_one(model, request).ids;
  request.stop_tokens = &free[2];
  request.stop_token_count = 1;
  const Written stopped = run_one(model, request);
  EXPECT_EQ(stopped.ids, Tokens(free.begin(), std::ranges::find(free, free[2]) + 1));
  EXPECT_EQ(stopped.finish, MINIMIND_STOP);
  request.min_tokens = 5;
  EXPECT_GE(run_one(model, request).ids.size(), 5u);
  request.min_tokens = 7;
  minimind_generation* generation = nullptr;
  EXPECT_EQ(minimind_submit(model.get(), &request, &generation), MINIMIND_BAD_ARGUMENT);
}

// Bans all tokens but the one that has the number of ids before it, which it counts.
int count_ids(void* data, const std::int32_t*, std::size_t count, float* logits, std::size_t vocab_size) {
  std::fill_n(logits, vocab_size, -INFINITY);
  logits[count] = 0;
  return ++*static_cast<int*>(data) < 4;
}

TEST(CInterface, SamplesFromTheLogitsThatTheCallersFunctionChanges) {
  const GoldenCase golden = load_golden("v3-dense");
  const ModelHandle model = open_model(golden.model_path);
  const Tokens prompt{5, 6};
  int calls = 0;
  minimind_request request = greedy_request(prompt, 3);
  request.process_logits = count_ids;
  request.process_data = &calls;
  EXPECT_EQ(run_one(model, request).ids, (Tokens{2, 3, 4}));
  const GenerationHandle failing = submit(model, request);
  std::size_t texts = 1;
  while (texts > 0) ASSERT_EQ(minimind_step(model.get(), &texts), MINIMIND_OK);
  minimind_output output{};
  output.size = sizeof output;
  EXPECT_EQ(minimind_poll(failing.get(), &output), MINIMIND_BAD_INPUT);
  EXPECT_STREQ(minimind_generation_error(failing.get()), "process_logits returned 0: it failed");
}

// What a function of the caller does with other handles of the model while a step calls it.
struct UseInStep {
  minimind_model* model;
  GenerationHandle other;  // that it drops
  std::vector<minimind_status> statuses;
};

int use_in_step(void* data, const std::int32_t*, std::size_t, float*, std::size_t) {
  UseInStep& use = *static_cast<UseInStep*>(data);
  minimind_facts facts;
  facts.size = sizeof facts;
  use.statuses = {minimind_step(use.model, nullptr), minimind_get_facts(use.model, &facts)};
  use.other.reset();
  return 1;
}

TEST(CInterface, AFunctionInAStepDoesNotWaitForThatStep) {
  minimind_model_options given = options();
  given.threads = 2;  // which take the tokens of several texts
  const ModelHandle model = open_model(load_golden("v3-dense").model_path, given);
  const Tokens prompt{5, 6};
  minimind_request request = greedy_request(prompt, 3);
  std::list<UseInStep> uses;
  std::vector<GenerationHandle> texts_with_function;
  for (std::size_t i = 0; i < 8; ++i) {
    UseInStep& use = uses.emplace_back(UseInStep{model.get(), submit(model, greedy_request(prompt, 3)), {}});
    request.process_logits = use_in_step;
    request.process_data = &use;
    texts_with_function.push_back(submit(model, request));
  }
  for (const Written& written : run_all(model, texts_with_function)) EXPECT_EQ(written.ids.size(), 3u);
  for (const UseInStep& use : uses) EXPECT_EQ(use.statuses, std::vector(2, MINIMIND_BUSY));
  std::size_t texts = 1;
  ASSERT_EQ(minimind_step(model.get(), &texts), MINIMIND_OK);
  EXPECT_EQ(texts, 0u);
}

TEST(CInterface, RejectsProcessedLogitsThatNoTokenCanBeSampledFrom) {
  const ModelHandle model = open_model(load_golden("v3-dense").model_path);
  const Tokens prompt{5};
  minimind_request request = greedy_request(prompt, 3);
  float value = NAN;
  request.process_data = &value;
  request.process_logits = [](void* data, const std::int32_t*, std::size_t, float* logits, std::size_t count) {
    std::fill_n(logits, count, *static_cast<float*>(data));
    return 1;
  };
  minimind_output output{};
  output.size = sizeof output;
  for (const auto& [number, message] :
       {std::pair(NAN, "process_logits wrote nan, expected numbers or minus infinity"),
        std::pair(-INFINITY, "process_logits excludes every token, expected one that may follow")}) {
    value = number;
    const GenerationHandle text = submit(model, request);
    ASSERT_EQ(minimind_step(model.get(), nullptr), MINIMIND_OK);
    EXPECT_EQ(minimind_poll(text.get(), &output), MINIMIND_BAD_INPUT);
    EXPECT_STREQ(minimind_generation_error(text.get()), message);
  }
}

TEST(CInterface, EndsACancelledTextAndDropsAReleasedOne) {
  const GoldenCase golden = load_golden("v3-dense");
  const ModelHandle model = open_model(golden.model_path);
  const Tokens prompt{golden.tokens.front()};
  const GenerationHandle cancelled = submit(model, greedy_request(prompt, 50));
  GenerationHandle released = submit(model, greedy_request(prompt, 50));
  std::size_t left = 0;
  ASSERT_EQ(minimind_step(model.get(), &left), MINIMIND_OK);
  EXPECT_EQ(left, 2u);
  minimind_cancel(cancelled.get());
  released.reset();
  ASSERT_EQ(minimind_step(model.get(), &left), MINIMIND_OK);
  EXPECT_EQ(left, 0u);
  Written written;
  poll_into(written, cancelled);
  EXPECT_EQ(written.finish, MINIMIND_CANCELLED);
}

// Opens a model with keys and values for `positions` tokens of all texts.
ModelHandle open_with_positions(const GoldenCase& golden, std::size_t positions) {
  const Config config = open_checkpoint(golden.model_path, {}).config;
  minimind_model_options given = options();
  given.kv_memory = KvCache::bytes(config, KvType::f32, positions);
  given.kv_type = "f32";
  given.parallel = 2;
  return open_model(golden.model_path, given);
}

TEST(CInterface, AReleasedTextLeavesItsMemoryToOthers) {
  const GoldenCase golden = load_golden("v3-dense");
  const ModelHandle model = open_with_positions(golden, 51);
  const Tokens prompt{golden.tokens.front()};
  for (std::size_t i = 0; i < 3; ++i) {
    const GenerationHandle text = submit(model, greedy_request(prompt, 50));
    ASSERT_EQ(minimind_step(model.get(), nullptr), MINIMIND_OK);
    Written written;
    poll_into(written, text);
    EXPECT_EQ(written.ids.size(), 1u) << i;
  }
}

// While one small text or another has some of the memory, there is none for a large one.
TEST(CInterface, ATextThatSixteenOthersHavePassedIsNext) {
  constexpr std::size_t small = 6, count = 60, large = 1;
  const GoldenCase golden = load_golden("v3-dense");
  const ModelHandle model = open_with_positions(golden, 51);
  const Tokens prompt{golden.tokens.front()};
  std::vector<GenerationHandle> texts;
  for (std::size_t i = 0; i < count; ++i) {
    // The first is shorter, so that no two end in one step.
    texts.push_back(submit(model, greedy_request(prompt, i == 0 ? small / 2 : i == large ? 50 : small)));
  }
  std::vector<Written> written(count);
  std::size_t left = count;
  while (written[large].ids.empty() && left > 0) {
    ASSERT_EQ(minimind_step(model.get(), &left), MINIMIND_OK);
    for (std::size_t i = 0; i < count; ++i) poll_into(written[i], texts[i]);
  }
  const auto has_ended = [](const Written& text) { return text.finish == MINIMIND_LENGTH; };
  EXPECT_EQ(std::count_if(written.begin(), written.end(), has_ended), 17) << "the first, and the 16 that passed it";
}

TEST(CInterface, ReplacesWeightsFromAFileAndFromMemory) {
  const GoldenCase golden = load_golden("v3-dense"), other = load_golden("v3-fp32");
  const ModelHandle model = open_model(golden.model_path);
  const std::vector<float> before = logits_of(model, golden.tokens, golden.vocab);
  const GenerationHandle running = submit(model, greedy_request({golden.tokens.front()}, 5));
  ASSERT_EQ(minimind_step(model.get(), nullptr), MINIMIND_OK);
  EXPECT_EQ(minimind_reload(model.get(), other.model_path.c_str()), MINIMIND_BUSY);
  EXPECT_EQ(minimind_reload(model.get(), "/nowhere"), MINIMIND_BUSY);
  std::size_t left = 1;
  while (left > 0) ASSERT_EQ(minimind_step(model.get(), &left), MINIMIND_OK);

  ASSERT_EQ(minimind_reload(model.get(), other.model_path.c_str()), MINIMIND_OK) << minimind_model_error(model.get());
  const std::vector<float> others = logits_of(model, golden.tokens, golden.vocab);
  EXPECT_NE(others, before);

  const Checkpoint checkpoint = open_checkpoint(golden.model_path, {});
  std::vector<minimind_tensor> tensors;
  std::list<std::vector<std::byte>> data;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    data.push_back(tensor.data.read_all());
    tensors.push_back({.name = name.c_str(),
                       .type = tensor.dtype == DType::f32 ? "f32" : "f16",
                       .shape = tensor.shape.data(),
                       .rank = tensor.shape.size(),
                       .data = data.back().data(),
                       .bytes = data.back().size()});
  }
  ASSERT_EQ(minimind_load_tensors(model.get(), tensors.data(), tensors.size()), MINIMIND_OK)
      << minimind_model_error(model.get());
  EXPECT_EQ(logits_of(model, golden.tokens, golden.vocab), before);

  // A file that changes while it is read leaves the model as it was.
  const TemporaryFile file(read_whole_file(other.model_path));
  std::atomic<bool> done{false};
  std::thread trainer([&, content = read_whole_file(other.model_path)] {
    while (!done) file.write(content);
  });
  for (int i = 0; i < 100; ++i) {
    const bool loaded = minimind_reload(model.get(), file.path().c_str()) == MINIMIND_OK;
    const std::vector<float> logits = logits_of(model, golden.tokens, golden.vocab);
    EXPECT_TRUE(loaded ? logits == others : logits == before) << minimind_model_error(model.get());
    EXPECT_EQ(minimind_load_tensors(model.get(), tensors.data(), tensors.size()), MINIMIND_OK);
  }
  done = true;
  trainer.join();

  tensors.pop_back();
  EXPECT_EQ(minimind_load_tensors(model.get(), tensors.data(), tensors.size()), MINIMIND_BAD_INPUT);
  EXPECT_EQ(logits_of(model, golden.tokens, golden.vocab), before);
}

TEST(CInterface, ATextThatHasNotStartedGetsTheNewWeights) {
  const GoldenCase golden = load_golden("v3-dense"), other = load_golden("v3-fp32");
  const ModelHandle model = open_model(golden.model_path), expected = open_model(other.model_path);
  const Tokens prompt{golden.tokens.front()};
  const minimind_request request = greedy_request(prompt, 5);
  std::vector<GenerationHandle> texts;
  texts.push_back(submit(model, request));
  ASSERT_EQ(minimind_reload(model.get(), other.model_path.c_str()), MINIMIND_OK) << minimind_model_error(model.get());
  EXPECT_EQ(run_all(model, texts).front().ids, run_one(expected, request).ids);
}

TEST(CInterface, AHeldTextStartsWithItsFirstPoll) {
  const GoldenCase golden = load_golden("v3-dense"), other = load_golden("v3-fp32");
  const ModelHandle model = open_model(golden.model_path), expected = open_model(other.model_path);
  const Tokens prompt{golden.tokens.front()};
  minimind_request request = greedy_request(prompt, 5);
  minimind_session* session = nullptr;
  ASSERT_EQ(minimind_session_open(model.get(), 0, &session), MINIMIND_OK);
  request.session = session;
  request.held = 1;
  std::vector<GenerationHandle> texts;
  texts.push_back(submit(model, request));
  run_one(model, greedy_request(prompt, 3));
  const GenerationHandle unused = submit(model, request);
  ASSERT_EQ(minimind_reload(model.get(), other.model_path.c_str()), MINIMIND_OK) << minimind_model_error(model.get());
  minimind_output output;
  output.size = sizeof output;
  ASSERT_EQ(minimind_poll(texts.front().get(), &output), MINIMIND_OK);
  EXPECT_EQ(minimind_poll(unused.get(), &output), MINIMIND_BUSY) << "of the session";
  EXPECT_EQ(run_all(model, texts).front().ids, run_one(expected, greedy_request(prompt, 5)).ids);
  EXPECT_EQ(minimind_poll(unused.get(), &output), MINIMIND_OK);
  minimind_session_close(session);
}

TEST(CInterface, TextsThatAreKeptGoOnWithTheNewWeightsAndTellTheirTokensApart) {
  const GoldenCase golden = load_golden("v3-dense"), other = load_golden("v3-fp32");
  const ModelHandle model = open_model(golden.model_path), expected = open_model(other.model_path);
  ASSERT_EQ(minimind_keep_texts(model.get(), 1), MINIMIND_OK);
  const Tokens prompt(golden.tokens.begin(), golden.tokens.begin() + 3);
  const minimind_request request = greedy_request(prompt, 6);
  std::vector<GenerationHandle> texts;
  texts.push_back(submit(model, request));
  for (int i = 0; i < 2; ++i) ASSERT_EQ(minimind_step(model.get(), nullptr), MINIMIND_OK);
  ASSERT_EQ(minimind_reload(model.get(), other.model_path.c_str()), MINIMIND_OK) << minimind_model_error(model.get());
  texts.push_back(submit(model, request));
  const std::vector<Written> written = run_all(model, texts);
  EXPECT_EQ(written[0].weights, (std::vector<std::size_t>{0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(written[1].weights, std::vector<std::size_t>(6, 1));
  const Tokens of_the_new = run_one(expected, request).ids;
  EXPECT_EQ(written[1].ids, of_the_new) << "nothing of the old keys and values";
  EXPECT_EQ(run_one(model, request).ids, of_the_new);
}

TEST(CInterface, AForkedChildOfAParentWithATeamOpensAModelOfItsOwn) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer ends a forked child that starts threads";
#endif
  if (is_emulated()) GTEST_SKIP() << "the emulator crashes if a forked child starts threads";
  const GoldenCase golden = load_golden("v3-dense");
  minimind_model_options given = options();
  given.threads = 2;
  const ModelHandle model = open_model(golden.model_path, given);
  const std::vector<float> logits = logits_of(model, golden.tokens, golden.vocab);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);  // ends a child that waits for threads which it has not
    const ModelHandle own = open_model(golden.model_path, given);
    ::_exit(logits_of(own, golden.tokens, golden.vocab) == logits ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(logits_of(model, golden.tokens, golden.vocab), logits);
}

TEST(CInterface, SavesASessionAndContinuesItElsewhere) {
  const GoldenCase golden = load_golden("v3-dense");
  minimind_model_options given = options();
  given.session_files = 1;
  const ModelHandle model = open_model(golden.model_path, given);
  const SessionHandle session = open_session_of(model, golden.tokens.size());
  const std::size_t half = golden.tokens.size() / 2;
  ASSERT_EQ(minimind_session_run(session.get(), golden.tokens.data(), half, 0, nullptr, 0), MINIMIND_OK);
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/half.session";
  ASSERT_EQ(minimind_session_save(session.get(), path.c_str()), MINIMIND_OK) << minimind_session_error(session.get());

  const ModelHandle again = open_model(golden.model_path, given);
  const SessionHandle loaded = open_session_of(again, golden.tokens.size());
  ASSERT_EQ(minimind_session_load(loaded.get(), path.c_str()), MINIMIND_OK) << minimind_session_error(loaded.get());
  Tokens ids(half);
  std::size_t count = 0;
  ASSERT_EQ(minimind_session_ids(loaded.get(), ids.data(), ids.size(), &count), MINIMIND_OK);
  EXPECT_TRUE(std::equal(ids.begin(), ids.end(), golden.tokens.begin()));
  const std::size_t rest = golden.tokens.size() - half;
  std::vector<float> logits(rest * golden.vocab);
  ASSERT_EQ(minimind_session_run(loaded.get(), golden.tokens.data() + half, rest, rest, logits.data(), logits.size()),
            MINIMIND_OK);
  const std::vector<float> whole = logits_of(model, golden.tokens, golden.vocab);
  EXPECT_TRUE(
      std::equal(logits.begin(), logits.end(), whole.begin() + static_cast<std::ptrdiff_t>(half * golden.vocab)));

  const ModelHandle other = open_model(load_golden("v3-fp32").model_path, given);
  const SessionHandle wrong = open_session_of(other, golden.tokens.size());
  EXPECT_EQ(minimind_session_load(wrong.get(), path.c_str()), MINIMIND_BAD_INPUT);
  EXPECT_EQ(minimind_session_load(wrong.get(), (path + ".missing").c_str()), MINIMIND_NOT_FOUND);
}

TEST(CInterface, WritesATextInASessionAndKeepsItsTokens) {
  const GoldenCase golden = load_golden("v3-dense");
  const ModelHandle model = open_model(golden.model_path);
  SessionHandle session = open_session_of(model, golden.tokens.size());
  const Tokens prompt(golden.tokens.begin(), golden.tokens.begin() + static_cast<std::ptrdiff_t>(golden.prompt_len));
  minimind_request request = greedy_request(prompt, golden.greedy.size());
  request.session = session.get();
  const GenerationHandle first = submit(model, request);
  EXPECT_EQ(minimind_session_rewind(session.get(), 0), MINIMIND_BUSY);
  minimind_generation* second = nullptr;
  EXPECT_EQ(minimind_submit(model.get(), &request, &second), MINIMIND_BUSY);
  std::size_t left = 1;
  while (left > 0) ASSERT_EQ(minimind_step(model.get(), &left), MINIMIND_OK);
  Written written;
  poll_into(written, first);
  EXPECT_EQ(written.ids, golden.greedy);
  std::size_t count = 0;
  minimind_session_ids(session.get(), nullptr, 0, &count);
  EXPECT_GE(count, golden.prompt_len);
  ASSERT_EQ(minimind_reload(model.get(), golden.model_path.c_str()), MINIMIND_OK);
  EXPECT_EQ(minimind_session_run(session.get(), prompt.data(), 1, 0, nullptr, 0), MINIMIND_BUSY);
  EXPECT_EQ(minimind_session_rewind(session.get(), 0), MINIMIND_OK);
  EXPECT_EQ(minimind_session_run(session.get(), prompt.data(), 1, 0, nullptr, 0), MINIMIND_OK);
}

TEST(CInterface, SplitsAnAnswerIntoOpenAisDeltas) {
  const std::string prompt = "<|im_start|>assistant\n<think>\n";
  minimind_answer* answer = nullptr;
  ASSERT_EQ(minimind_answer_open(prompt.data(), prompt.size(), &answer, nullptr), MINIMIND_OK);
  const std::string text = "hm\n</think>\n\nyes<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>";
  const char* json = nullptr;
  std::string thought, content;
  nlohmann::json call;
  for (std::size_t i = 0; i < text.size(); ++i) {
    ASSERT_EQ(minimind_answer_push(answer, &text[i], 1, i + 1 == text.size(), &json, nullptr), MINIMIND_OK);
    for (const auto& delta : nlohmann::json::parse(json)) {
      thought += delta.value("reasoning_content", "");
      content += delta.value("content", "");
      if (delta.contains("tool_calls")) call = delta["tool_calls"][0];
    }
  }
  minimind_answer_close(answer);
  EXPECT_EQ(thought, "hm");
  EXPECT_EQ(content, "yes");
  EXPECT_EQ(call.at("function").at("name"), "f");
  EXPECT_EQ(call.at("function").at("arguments"), R"({"a": 1})");
  EXPECT_EQ(call.at("id"), "call_1");
}

TEST(CInterface, InterruptsLogitsWhenTheCallersFunctionSaysSo) {
  const GoldenCase golden = load_golden("v3-dense");
  const ModelHandle model = open_model(golden.model_path);
  std::vector<float> logits(golden.tokens.size() * golden.vocab);
  const auto stop = [](void*, std::size_t) { return 0; };
  EXPECT_EQ(minimind_logits(model.get(), golden.tokens.data(), golden.tokens.size(), logits.data(), logits.size(), stop,
                            nullptr),
            MINIMIND_INTERRUPTED);
}

TEST(CInterface, EndsAScoreOnceAFlagIsSet) {
  const ModelHandle model = open_model(demo_model);
  const Tokens ids(2000, 5);
  std::vector<double> scores(ids.size() - 1);
  volatile int flag = 0;
  const auto score = [&] {
    return minimind_score(model.get(), ids.data(), ids.size(), scores.data(), scores.size(), minimind_proceed_until_set,
                          const_cast<int*>(&flag));
  };
  EXPECT_EQ(score(), MINIMIND_OK);
  flag = 1;
  EXPECT_EQ(score(), MINIMIND_INTERRUPTED);
}

struct TracePatterns {
  std::vector<const char*> names{};
  std::vector<std::size_t> layers{};
};

RecordingHandle trace(const ModelHandle& model, const Tokens& ids, const TracePatterns& chosen, std::size_t& count,
                      minimind_status expected = MINIMIND_OK, minimind_proceed proceed = nullptr) {
  minimind_recording* recording = nullptr;
  EXPECT_EQ(minimind_trace(model.get(), ids.data(), ids.size(), chosen.names.data(), chosen.names.size(),
                           chosen.layers.data(), chosen.layers.size(), proceed, nullptr, &recording, &count),
            expected)
      << minimind_model_error(model.get());
  EXPECT_EQ(recording == nullptr, expected != MINIMIND_OK);
  return RecordingHandle(recording);
}

TEST(CInterface, RecordsTheValuesOfPoints) {
  const GoldenCase golden = load_golden("v1-moe");
  ModelHandle model = open_model(golden.model_path);
  std::size_t count = 0;
  const RecordingHandle recording = trace(model, golden.tokens, {.names = {"layers.*.attention.*", "output"}}, count);
  ASSERT_EQ(count, 19);
  model.reset();
  minimind_point point{};
  point.size = sizeof point;
  ASSERT_EQ(minimind_recording_point(recording.get(), 0, &point), MINIMIND_OK);
  EXPECT_STREQ(point.name, "layers.0.attention.wq");
  EXPECT_STREQ(point.formula, "q = W_q n");
  ASSERT_EQ(minimind_recording_point(recording.get(), count - 1, &point), MINIMIND_OK);
  EXPECT_STREQ(point.name, "output");
  ASSERT_EQ(point.rank, 2);
  EXPECT_EQ(point.shape[0], golden.tokens.size());
  EXPECT_EQ(point.shape[1], golden.vocab);
  EXPECT_NEAR(point.values[golden.vocab + 3], golden.logits[golden.vocab + 3], 1e-4);
  EXPECT_EQ(minimind_recording_point(recording.get(), count, &point), MINIMIND_BAD_ARGUMENT);
  EXPECT_STREQ(minimind_recording_error(recording.get()), "index is 19, expected at most 18");
}

TEST(CInterface, RejectsPointsThatDoNotExistAndIsInterrupted) {
  const ModelHandle model = open_model(load_golden("v3-dense").model_path);
  std::size_t count = 0;
  trace(model, {1}, {.names = {"lm_hed"}}, count, MINIMIND_BAD_ARGUMENT);
  EXPECT_STREQ(minimind_model_error(model.get()), "no point of the model is 'lm_hed'; did you mean lm_head?");
  trace(model, {1}, {.names = {}, .layers = {2}}, count, MINIMIND_BAD_ARGUMENT);
  EXPECT_STREQ(minimind_model_error(model.get()), "layer 2 does not exist, expected 0 to 1");
  trace(model, {}, {}, count, MINIMIND_BAD_INPUT);
  trace(model, {1}, {}, count, MINIMIND_INTERRUPTED, [](void*, std::size_t) { return 0; });
}

TEST(CInterface, MayBeUsedByManyThreads) {
  const GoldenCase golden = load_golden("v3-dense");
  const ModelHandle model = open_model(golden.model_path);
  const Tokens prompt(golden.tokens.begin(), golden.tokens.begin() + static_cast<std::ptrdiff_t>(golden.prompt_len));
  std::vector<Written> written(4);
  std::vector<std::thread> threads;
  for (Written& own : written) {
    threads.emplace_back([&] {
      const GenerationHandle text = submit(model, greedy_request(prompt, golden.greedy.size()));
      while (own.finish == MINIMIND_RUNNING) {
        minimind_step(model.get(), nullptr);
        poll_into(own, text);
      }
      EXPECT_NE(minimind_reload(model.get(), ""), MINIMIND_OK);
      EXPECT_STRNE(minimind_model_error(model.get()), "");
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Written& own : written) EXPECT_EQ(own.ids, golden.greedy);
}

TEST(CInterface, KeepsWhatAGenerationNeedsAfterItsModelIsClosed) {
  const GoldenCase golden = load_golden("v3-dense");
  ModelHandle model = open_model(golden.model_path);
  const GenerationHandle text = submit(model, greedy_request({golden.tokens.front()}, 5));
  minimind_step(model.get(), nullptr);
  model.reset();
  Written written;
  poll_into(written, text);
  EXPECT_EQ(written.ids.size(), 1u);
}

// What opening says; the file is named.
minimind_status open_status(const std::string& path, const minimind_model_options& given, std::string& message) {
  minimind_model* model = nullptr;
  minimind_error error{};
  const minimind_status status = minimind_open(path.c_str(), &given, &model, &error);
  EXPECT_EQ(model, nullptr);
  message = error.message;
  return status;
}

TEST(CInterface, SaysWhyAModelCannotBeOpened) {
  std::string message;
  EXPECT_EQ(open_status("/nowhere/model.pth", options(), message), MINIMIND_NOT_FOUND);
  EXPECT_NE(message.find("/nowhere/model.pth"), std::string::npos) << message;
  EXPECT_EQ(open_status(MINIMIND_SOURCE_DIR "/Makefile", options(), message), MINIMIND_BAD_INPUT);
  minimind_model_options given = options();
  given.type = "int3";
  EXPECT_EQ(open_status(demo_model, given, message), MINIMIND_BAD_ARGUMENT);
  EXPECT_NE(message.find("int3"), std::string::npos) << message;
  for (const auto option : {&minimind_model_options::type, &minimind_model_options::kv_type,
                            &minimind_model_options::compute, &minimind_model_options::rope_scaling}) {
    given = options();
    given.*option = "";
    EXPECT_EQ(open_status(demo_model, given, message), MINIMIND_BAD_ARGUMENT) << "only NULL is none";
  }
  given = options();
  given.size = 1000;
  EXPECT_EQ(open_status(demo_model, given, message), MINIMIND_BAD_ARGUMENT);
  given = options();
  given.parallel = 0;
  EXPECT_EQ(open_status(demo_model, given, message), MINIMIND_BAD_ARGUMENT);
  minimind_model* model = nullptr;
  EXPECT_EQ(minimind_open(nullptr, nullptr, &model, nullptr), MINIMIND_BAD_ARGUMENT);
  EXPECT_EQ(minimind_open(demo_model.c_str(), nullptr, nullptr, nullptr), MINIMIND_BAD_ARGUMENT);
}

TEST(CInterface, ReadsAChatTemplateFromAFileAlone) {
  const TemporaryFolder folder;
  const std::string pipe = folder.path() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {std::string(), pipe}) {
    minimind_model_options given = options();
    given.chat_template = path.c_str();
    std::string message;
    EXPECT_NE(open_status(demo_model, given, message), MINIMIND_OK) << path << ": only NULL is none";
  }
}

// The status of a request after `change`.
template <class Change>
minimind_status submit_status(const ModelHandle& model, Change change) {
  static const Tokens prompt{1, 2, 3};
  minimind_request request = greedy_request(prompt, 5);
  change(request);
  minimind_generation* generation = nullptr;
  const minimind_status status = minimind_submit(model.get(), &request, &generation);
  EXPECT_EQ(generation == nullptr, status != MINIMIND_OK);
  if (status != MINIMIND_OK) {
    EXPECT_STRNE(minimind_model_error(model.get()), "");
  }
  minimind_release(generation);
  return status;
}

TEST(CInterface, RejectsWrongRequests) {
  const GoldenCase golden = load_golden("v3-dense");
  const TemporaryFolder folder;
  const std::string alone = folder.path() + "/model.pth";
  std::filesystem::copy_file(golden.model_path, alone);
  const ModelHandle model = open_model(alone);
  using Request = minimind_request;
  static constexpr std::int32_t outside = 1 << 20;
  static constexpr minimind_logit_bias bias{outside, 1};
  EXPECT_EQ(submit_status(model, [](Request&) {}), MINIMIND_OK);
  EXPECT_EQ(submit_status(model, [](Request& r) { r.id_count = 0; }), MINIMIND_BAD_INPUT);
  EXPECT_EQ(submit_status(model, [](Request& r) { r.ids = nullptr; }), MINIMIND_BAD_ARGUMENT);
  EXPECT_EQ(submit_status(model, [](Request& r) { r.ids = &outside, r.id_count = 1; }), MINIMIND_BAD_INPUT);
  EXPECT_EQ(submit_status(model, [](Request& r) { r.text = "a"; }), MINIMIND_BAD_ARGUMENT);
  EXPECT_EQ(submit_status(model, [](Request& r) { r.ids = nullptr, r.text = "a", r.text_size = 1; }),
            MINIMIND_NO_TOKENIZER);
  EXPECT_EQ(submit_status(model, [](Request& r) { r.top_p = 2; }), MINIMIND_BAD_ARGUMENT);
  EXPECT_EQ(submit_status(model, [](Request& r) { r.temperature = NAN; }), MINIMIND_BAD_ARGUMENT);
  EXPECT_EQ(submit_status(model, [](Request& r) { r.logit_bias = &bias, r.logit_bias_count = 1; }),
            MINIMIND_BAD_ARGUMENT);
  EXPECT_EQ(submit_status(model, [](Request& r) { r.stop_count = 1; }), MINIMIND_BAD_ARGUMENT);
  EXPECT_EQ(submit_status(model, [](Request& r) { r.grammar = "root = ", r.grammar_size = 7; }), MINIMIND_BAD_INPUT);
  EXPECT_EQ(submit_status(model, [](Request& r) { r.json_schema = "{", r.json_schema_size = 1; }), MINIMIND_BAD_INPUT);
  EXPECT_EQ(submit_status(model, [](Request& r) { r.size = 0; }), MINIMIND_BAD_ARGUMENT);
  EXPECT_EQ(submit_status(model, [](Request& r) { r.max_tokens = SIZE_MAX; }), MINIMIND_OK);
}

TEST(CInterface, SurvivesNullHandlesAndArrays) {
  std::size_t count = 0;
  EXPECT_EQ(minimind_step(nullptr, nullptr), MINIMIND_BAD_ARGUMENT);
  EXPECT_EQ(minimind_poll(nullptr, nullptr), MINIMIND_BAD_ARGUMENT);
  EXPECT_EQ(minimind_session_save(nullptr, nullptr), MINIMIND_BAD_ARGUMENT);
  EXPECT_STRNE(minimind_model_error(nullptr), "");
  minimind_close(nullptr);
  minimind_release(nullptr);
  minimind_cancel(nullptr);
  minimind_session_close(nullptr);
  minimind_answer_close(nullptr);
  const ModelHandle model = open_model(demo_model);
  EXPECT_EQ(minimind_encode(model.get(), nullptr, 3, MINIMIND_ENCODE_TEXT, nullptr, 0, &count), MINIMIND_BAD_ARGUMENT);
  EXPECT_EQ(minimind_encode(model.get(), "a", 1, 9, nullptr, 0, &count), MINIMIND_BAD_ARGUMENT);
  EXPECT_EQ(minimind_logits(model.get(), nullptr, 3, nullptr, 0, nullptr, nullptr), MINIMIND_BAD_ARGUMENT);
  EXPECT_EQ(minimind_submit(model.get(), nullptr, nullptr), MINIMIND_BAD_ARGUMENT);
  EXPECT_EQ(minimind_load_tensors(model.get(), nullptr, 2), MINIMIND_BAD_ARGUMENT);
  EXPECT_EQ(minimind_get_facts(model.get(), nullptr), MINIMIND_BAD_ARGUMENT);
}

}  // namespace
}  // namespace minimind
