#include "tools/openai/samplers.h"

#include <gtest/gtest.h>

#include <string>

#include "tools/openai/request_error.h"

namespace minimind {
namespace {

// Every step is on.
GenerationParameters all_on() {
  GenerationParameters parameters;
  SamplingOptions& sampling = parameters.sampling;
  sampling.temperature = 0.5;
  sampling.top_k = 5;
  sampling.typical_p = 0.4;
  sampling.top_p = 0.6;
  sampling.min_p = 0.1;
  sampling.repeat_penalty = 1.5;
  sampling.presence_penalty = 0.2;
  sampling.frequency_penalty = 0.3;
  sampling.dry.multiplier = 0.8;
  return parameters;
}

SamplingOptions read(const std::string& samplers, GenerationParameters parameters = all_on(),
                     const std::string& more = "") {
  const ChatJson body = parse_body("{\"samplers\": " + samplers + more + "}");
  read_samplers(BodyFields(body), parameters);
  return parameters.sampling;
}

std::string error_of(const std::string& samplers, const GenerationParameters& parameters = all_on()) {
  try {
    read(samplers, parameters);
  } catch (const RequestError& error) {
    EXPECT_EQ(error.param(), "samplers");
    return error.what();
  }
  return "";
}

TEST(Samplers, TurnOffStepsThatAreNotListed) {
  const SamplingOptions none = read("[]");
  EXPECT_EQ(none.temperature, 1);
  EXPECT_EQ(none.top_k, 0u);
  EXPECT_EQ(none.typical_p, 1);
  EXPECT_EQ(none.top_p, 1);
  EXPECT_EQ(none.min_p, 0);
  EXPECT_EQ(none.repeat_penalty, 1);
  EXPECT_EQ(none.presence_penalty, 0);
  EXPECT_EQ(none.frequency_penalty, 0);
  EXPECT_EQ(none.dry.multiplier, 0);
  for (const char* const name : {"typ_p", "typical_p"}) {
    EXPECT_EQ(read("[\"" + std::string(name) + "\"]").typical_p, 0.4) << name;
  }
  const SamplingOptions all =
      read(R"(["temperature", "penalties", "dry", "top_k", "typ_p", "top_p", "min_p", "top_n_sigma", "xtc"])");
  EXPECT_EQ(all.temperature, 0.5);
  EXPECT_EQ(all.top_k, 5u);
  EXPECT_EQ(all.typical_p, 0.4);
  EXPECT_EQ(all.top_p, 0.6);
  EXPECT_EQ(all.min_p, 0.1);
  EXPECT_EQ(all.repeat_penalty, 1.5);
  EXPECT_EQ(all.presence_penalty, 0.2);
  EXPECT_EQ(all.frequency_penalty, 0.3);
  EXPECT_EQ(all.dry.multiplier, 0.8);
}

TEST(Samplers, LeaveATextWithoutSamplingGreedy) {
  GenerationParameters greedy = all_on();
  greedy.sampling.temperature = 0;
  const SamplingOptions sampling = read(R"(["top_k"])", greedy, R"(, "do_sample": false)");
  EXPECT_EQ(sampling.temperature, 0);
  EXPECT_EQ(sampling.repeat_penalty, 1);
}

// p of the largest probability among those at temperature 1 is p^(1/T) of it at temperature T.
TEST(Samplers, AThresholdBeforeTheTemperatureIsOneAfterIt) {
  const SamplingOptions sampling = read(R"(["top_k", "min_p", "temperature"])");
  EXPECT_DOUBLE_EQ(sampling.min_p, 0.1 * 0.1);
  EXPECT_EQ(sampling.temperature, 0.5);
  EXPECT_EQ(read(R"(["temperature", "min_p"])").min_p, 0.1);
}

TEST(Samplers, TakeAnotherOrderIfItGivesTheSameText) {
  GenerationParameters parameters = all_on();
  parameters.sampling.presence_penalty = parameters.sampling.frequency_penalty = 0;
  EXPECT_EQ(error_of(R"(["min_p", "top_k"])", parameters), "");
  EXPECT_EQ(error_of(R"(["penalties", "temperature"])", parameters), "");
  EXPECT_NE(error_of(R"(["penalties", "temperature"])"), "");
  parameters.sampling.temperature = 1;
  EXPECT_EQ(
      error_of(R"(["penalties", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature"])", parameters),
      "");
  parameters.sampling.temperature = 0;
  EXPECT_EQ(error_of(R"(["top_p", "temperature"])", parameters), "");
}

TEST(Samplers, RejectAnOrderThatWouldGiveAnotherText) {
  EXPECT_EQ(error_of(R"(["top_p", "temperature"])"),
            "samplers has top_p before temperature, expected the server's order: temperature, penalties, dry, top_k, "
            "typ_p, top_p, min_p, top_n_sigma, xtc");
  for (const char* const list : {R"(["dry", "temperature"])", R"(["typ_p", "temperature"])", R"(["dry", "penalties"])",
                                 R"(["top_p", "top_k"])", R"(["min_p", "top_p"])"}) {
    EXPECT_NE(error_of(list), "") << list;
  }
}

TEST(Samplers, NameWhatIsUnknownOrTwice) {
  EXPECT_NE(error_of(R"(["top_k", "infill"])").find("has 'infill', expected each of temperature, "), std::string::npos);
  EXPECT_NE(error_of(R"(["top_k", "top_k"])").find("has 'top_k' twice"), std::string::npos);
  EXPECT_NE(error_of(R"(["typ_p", "typical_p"])").find("has 'typ_p' twice"), std::string::npos);
  EXPECT_NE(error_of("[1]").find("has 'an integer'"), std::string::npos);
  EXPECT_NE(error_of(R"("kfypmt")"), "");
}

}  // namespace
}  // namespace minimind
