#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/support/cases.h"
#include "tests/support/cli.h"
#include "tests/support/running.h"

namespace minimind {
namespace {

using BatchJson = nlohmann::json;

class Batch : public Cli {
 protected:
  // Requests of many lengths and kinds, every eleventh of which is wrong.
  void write_requests(std::size_t count) const {
    std::ofstream file(path("in.jsonl"));
    for (std::size_t i = 0; i < count; ++i) {
      BatchJson body{{"max_tokens", 1 + i * 7 % 23}, {"temperature", 0.9}};
      if (i % 7 == 3) body["n"] = 3;
      if (i % 11 == 5) body["n"] = 0;
      if (i % 3 == 0) {
        body["messages"] = {{{"role", "user"}, {"content", "写一首五言绝句，题目：江上"}}};
        file << BatchJson{{"custom_id", "chat " + std::to_string(i)},
                          {"method", "POST"},
                          {"url", "/v1/chat/completions"},
                          {"body", body}}
             << "\n";
      } else {
        body["prompt"] = i % 2 == 0 ? BatchJson("床前明月光，") : BatchJson{7, 8, 9};
        file << body << "\n";
      }
    }
  }

  std::string call(const std::string& output, const std::string& options = "") const {
    return "batch -q --seed 3 " + path("in.jsonl") + " -o " + path(output) + demo + " " + options;
  }

  // The lines of a file.
  std::vector<BatchJson> lines(const std::string& name) const {
    std::ifstream file(path(name));
    std::vector<BatchJson> all;
    for (std::string line; std::getline(file, line);) {
      all.push_back(BatchJson::parse(line));
    }
    return all;
  }
};

TEST_F(Batch, WritesTheSameTextsInOrderForAnyParallel) {
  const std::size_t requests = cases(40), wrong = (requests + 5) / 11;
  write_requests(requests);
  for (const char* const parallel : {"1", "5", "32"}) {
    const Outcome outcome = run(call(std::string("out") + parallel, std::string("--parallel ") + parallel));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
  const std::vector<BatchJson> alone = lines("out1");
  ASSERT_EQ(alone.size(), requests - wrong);
  EXPECT_EQ(alone[0]["custom_id"], "chat 0");
  EXPECT_EQ(alone[0]["response"]["body"]["object"], "chat.completion");
  EXPECT_EQ(alone[1]["custom_id"], "line-2");
  EXPECT_EQ(alone[1]["response"]["body"]["object"], "text_completion");
  EXPECT_EQ(lines("out5"), alone);
  EXPECT_EQ(lines("out32"), alone);
  const std::vector<BatchJson> errors = lines("out1.errors");
  ASSERT_EQ(errors.size(), wrong);
  EXPECT_EQ(errors[0]["custom_id"], "line-6");
  EXPECT_EQ(errors[0]["response"]["status_code"], 400);
  EXPECT_EQ(errors[0]["response"]["body"]["error"]["param"], "n");
  EXPECT_EQ(lines("out32.errors"), errors);
}

TEST_F(Batch, PartsHaveTheLinesOfTheWhole) {
  write_requests(18);
  ASSERT_EQ(run(call("whole")).status, 0);
  const std::string input = read_whole_file(path("in.jsonl"));
  const auto written = std::filesystem::last_write_time(path("in.jsonl"));
  std::size_t end = 0;
  for (int line = 1; line < 9; ++line) end = input.find('\n', end) + 1;
  std::vector<BatchJson> results, errors;
  for (const auto& [part, first] : {std::pair(input.substr(0, end), "1"), std::pair(input.substr(end), "9")}) {
    std::ofstream(path("in.jsonl")) << part;
    std::filesystem::last_write_time(path("in.jsonl"), written);
    const std::string output = std::string("part") + first;
    ASSERT_EQ(run(call(output, std::string("--first-line ") + first)).status, 0);
    for (const BatchJson& line : lines(output)) results.push_back(line);
    for (const BatchJson& line : lines(output + ".errors")) errors.push_back(line);
  }
  EXPECT_EQ(results, lines("whole"));
  EXPECT_EQ(errors, lines("whole.errors"));
}

TEST_F(Batch, AnswersRequestsForAnotherModelIfTold) {
  std::ofstream(path("in.jsonl")) << R"({"prompt": "a", "max_tokens": 1, "model": "theirs"})"
                                  << "\n";
  struct Case {
    std::string name;
    std::size_t answered;
  };
  for (const Case& each : {Case{"demo", 0}, Case{"theirs", 1}, Case{"any", 1}}) {
    ASSERT_EQ(run(call(each.name, "--model-name " + each.name)).status, 0);
    EXPECT_EQ(lines(each.name).size(), each.answered) << each.name;
  }
}

TEST_F(Batch, GivesSeveralChoicesAndTheBest) {
  std::ofstream(path("in.jsonl")) << R"({"prompt": "床前明月光，", "max_tokens": 12, "seed": 8, "n": 3})"
                                  << "\n"
                                  << R"({"prompt": "床前明月光，", "max_tokens": 12, "seed": 8, "n": 1, "best_of": 3})"
                                  << "\n"
                                  << R"({"prompt": "床前明月光，", "max_tokens": 12, "n": 2})"
                                  << "\n"
                                  << R"({"prompt": "床前明月光，", "max_tokens": 12})"
                                  << "\n";
  ASSERT_EQ(run(call("results")).status, 0);
  const std::vector<BatchJson> results = lines("results");
  ASSERT_EQ(results.size(), 4u);
  const auto body = [&](std::size_t i) { return results[i]["response"]["body"]; };
  const auto text = [&](std::size_t i, std::size_t choice) { return body(i)["choices"].at(choice)["text"]; };
  std::set<std::string> texts;
  for (int i = 0; i < 3; ++i) {
    const Outcome alone = run("generate --raw -q -n 12 --seed " + std::to_string(8 + i) + " -p 床前明月光，" + demo);
    EXPECT_EQ(text(0, static_cast<std::size_t>(i)), alone.out);
    texts.insert(alone.out);
  }
  EXPECT_EQ(body(0)["usage"]["completion_tokens"], 36);
  EXPECT_EQ(body(1)["choices"].size(), 1u);
  EXPECT_EQ(texts.count(text(1, 0)), 1u);
  EXPECT_EQ(body(1)["usage"]["completion_tokens"], 36);
  EXPECT_EQ(body(2)["choices"].size(), 2u);
  EXPECT_NE(text(2, 0), text(3, 0)) << "two requests have one seed";
  EXPECT_NE(text(2, 1), text(3, 0)) << "a request has the seeds of the next one";
}

TEST_F(Batch, PlainContentHasNoControlTokens) {
  std::ofstream(path("in.jsonl")) << R"({"messages": [{"role": "user", "content": "<|im_end|>"}], "max_tokens": 1})"
                                  << "\n";
  const auto prompt_tokens = [&](const std::string& output, const std::string& option) {
    const Outcome outcome = run(call(output, option));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return lines(output).at(0)["response"]["body"]["usage"]["prompt_tokens"].get<int>();
  };
  EXPECT_GT(prompt_tokens("plain", "--plain-content"), prompt_tokens("usual", ""));
}

TEST_F(Batch, GivesTheTextThatGenerateGives) {
  std::ofstream(path("in.jsonl")) << R"({"prompt": "床前明月光，", "max_tokens": 20, "seed": 8})"
                                  << "\n";
  ASSERT_EQ(run(call("results")).status, 0);
  const Outcome alone = run("generate --raw -q -n 20 --seed 8 -p 床前明月光，" + demo);
  EXPECT_EQ(lines("results").at(0)["response"]["body"]["choices"][0]["text"], alone.out);
}

TEST_F(Batch, ContinuesAfterTheWholeLinesOfABatchThatWasKilled) {
  write_requests(40);
  ASSERT_EQ(run(call("whole")).status, 0);
  for (const std::ptrdiff_t written : {0, 1, 8, 16}) {
    Running running(call("results"), path("out"), path("err"));
    ASSERT_TRUE(running.reach([&] { return std::ranges::count(read_whole_file(path("results")), '\n') >= written; }));
    EXPECT_EQ(running.interrupt(SIGKILL).first, 1000 + SIGKILL);
    std::ofstream(path("results"), std::ios::app) << R"({"id": "batch_req_)";  // what a crash leaves
  }
  ASSERT_EQ(run(call("results")).status, 0);
  EXPECT_EQ(lines("results"), lines("whole"));
  EXPECT_EQ(lines("results.errors"), lines("whole.errors"));
  const std::string before = read_whole_file(path("results"));
  EXPECT_EQ(run(call("results")).status, 0);
  EXPECT_EQ(read_whole_file(path("results")), before) << "nothing was left to do";
}

// A power loss takes a line of one file and leaves later ones of the other.
TEST_F(Batch, WritesALineAgainThatOnlyOneOfTheFilesHasLost) {
  write_requests(20);
  ASSERT_EQ(run(call("whole")).status, 0);
  for (const char* const name : {"", ".errors"}) {
    std::filesystem::copy_file(path(std::string("whole") + name), path(std::string("results") + name));
  }
  const auto take_lines = [&](const std::string& name, std::size_t first, std::size_t count) {
    std::ifstream whole(path("whole" + name));
    std::ofstream rest(path("results" + name), std::ios::trunc);
    std::string line;
    for (std::size_t i = 0; std::getline(whole, line); ++i) {
      if (i < first || i >= first + count) rest << line << "\n";
    }
  };
  take_lines("", 3, 2);
  ASSERT_EQ(run(call("results")).status, 0);
  EXPECT_EQ(lines("results"), lines("whole"));
  EXPECT_EQ(lines("results.errors"), lines("whole.errors"));
  take_lines(".errors", 0, 1);
  ASSERT_EQ(run(call("results")).status, 0);
  EXPECT_EQ(lines("results"), lines("whole"));
  EXPECT_EQ(lines("results.errors"), lines("whole.errors"));
}

// The token that the grammar needs is banned, so that the text fails while it is written. There is memory for one text.
TEST_F(Batch, WritesTheErrorOfATextThatFailsAndGivesItsMemoryToOthers) {
  constexpr std::size_t requests = 6;
  {
    std::ofstream file(path("in.jsonl"));
    for (std::size_t i = 0; i < requests; ++i) {
      const char* const grammar = i % 2 == 0 ? R"(root ::= "a")" : R"(root ::= "b")";
      file << BatchJson{{"prompt", "床前明月光，"}, {"max_tokens", 1000}, {"grammar", grammar}} << "\n";
    }
  }
  const std::string ids = run("tokenize -p a" + demo).out, banned = ids.substr(0, ids.find('\n'));
  const Outcome outcome =
      run(call("results", "--kv-memory 4 --ctx-size 2048 --logit-bias " + banned + "-inf"), "timeout 60");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const std::vector<BatchJson> results = lines("results"), errors = lines("results.errors");
  ASSERT_EQ(results.size(), requests / 2);
  ASSERT_EQ(errors.size(), requests / 2);
  for (const BatchJson& result : results) EXPECT_EQ(result["response"]["body"]["choices"][0]["text"], "b");
  for (const BatchJson& error : errors) {
    const auto message = error["response"]["body"]["error"]["message"].get<std::string>();
    EXPECT_NE(message.find("no token is left to sample"), std::string::npos) << message;
  }
}

// After "c" comes the token that is banned, after "b" nothing.
TEST_F(Batch, WritesOneErrorForARequestOfWhichOnlySomeTextsFail) {
  constexpr int requests = 3;
  {
    std::ofstream file(path("in.jsonl"));
    for (int i = 0; i < requests; ++i) {
      file << BatchJson{{"prompt", "床前明月光，"},
                        {"max_tokens", 9},
                        {"n", 16},
                        {"temperature", 5},
                        {"grammar", R"(root ::= "b" | "c" "a")"}}
           << "\n";
    }
    file << BatchJson{{"prompt", "床前明月光，"}, {"max_tokens", 9}, {"n", 16}, {"grammar", R"(root ::= "b")"}} << "\n";
  }
  const std::string ids = run("tokenize -p a" + demo).out, banned = ids.substr(0, ids.find('\n'));
  const Outcome outcome = run(call("results", "--logit-bias " + banned + "-inf"), "timeout 60");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const std::vector<BatchJson> results = lines("results"), errors = lines("results.errors");
  ASSERT_EQ(errors.size(), requests) << "one for each request";
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0]["response"]["body"]["choices"].size(), 16u);
}

TEST_F(Batch, CreatesTheFileOfErrorsWithTheFirstError) {
  std::ofstream(path("in.jsonl")) << R"({"prompt": "a", "max_tokens": 1})"
                                  << "\n";
  ASSERT_EQ(run(call("results")).status, 0);
  EXPECT_EQ(lines("results").size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(path("results.errors")));
  std::ofstream(path("in.jsonl"), std::ios::app) << "not JSON\n";
  ASSERT_EQ(run(call("results")).status, 0);
  EXPECT_EQ(lines("results").size(), 1u);
  EXPECT_EQ(lines("results.errors").size(), 1u);
}

TEST_F(Batch, RejectsFilesItCannotWriteBeforeTheFirstText) {
  write_requests(1);
  const Outcome missing = run(call("results", "--errors " + path("no-folder/errors")));
  EXPECT_EQ(missing.status, 1);
  EXPECT_NE(missing.err.find("no-folder/errors: cannot be"), std::string::npos) << missing.err;
  const std::string input = read_whole_file(path("in.jsonl"));
  const std::vector<std::string> clashes{"results --errors " + path("results"), "in.jsonl",
                                         "results --errors " + path("in.jsonl")};
  for (const std::string& files : clashes) {
    const Outcome same = run(call(files));
    EXPECT_EQ(same.status, 2) << files;
    EXPECT_NE(same.err.find("name two different files"), std::string::npos) << same.err;
  }
  EXPECT_EQ(read_whole_file(path("in.jsonl")), input);
}

TEST_F(Batch, RejectsAnOutputOfOtherRequests) {
  write_requests(3);
  std::ofstream(path("results")) << R"({"id": "batch_req_1", "custom_id": "of another batch"})"
                                 << "\n";
  const Outcome outcome = run(call("results"));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("line 1 is of request 'of another batch'"), std::string::npos) << outcome.err;
  EXPECT_EQ(read_whole_file(path("results")), "{\"id\": \"batch_req_1\", \"custom_id\": \"of another batch\"}\n");
}

TEST_F(Batch, KeepsNeitherInputNorResultsInMemory) {
  if (is_sanitized || is_emulated()) GTEST_SKIP() << "sanitizers and emulators take more memory than the limit";
  const std::string megabyte(1 << 20, 'a');
  std::ofstream file(path("in.jsonl"));
  file << R"({"prompt": "a", "max_tokens": 100})"
       << "\n";
  for (std::size_t i = 0; i < 100; ++i) file << megabyte << "\n";
  for (std::size_t i = 0; i < 20; ++i) file << BatchJson{{"custom_id", megabyte}} << "\n";
  for (std::size_t i = 0; i < 100; ++i) {
    file << BatchJson{{"custom_id", megabyte}, {"prompt", {7}}, {"max_tokens", 1}} << "\n";
  }
  file.close();
  for (const char* const expected : {"new", "complete"}) {
    EXPECT_EQ(run(call("results", "-t 1"), "ulimit -d 100000; timeout 120").status, 0) << expected;
    EXPECT_EQ(std::ranges::count(read_whole_file(path("results.errors")), '\n'), 120) << expected;
    EXPECT_EQ(std::ranges::count(read_whole_file(path("results")), '\n'), 101) << expected;
  }
}

TEST_F(Batch, ContinuesAfterAFullDisk) {
  write_requests(40);
  ASSERT_EQ(run(call("whole")).status, 0);
  const Outcome full = run(call("results"), "trap '' XFSZ; ulimit -f 8;");
  EXPECT_EQ(full.status, 1);
  EXPECT_NE(full.err.find("the same command continues"), std::string::npos) << full.err;
  EXPECT_GT(lines("results").size(), 0u);
  EXPECT_TRUE(read_whole_file(path("results")).ends_with("\n"));
  ASSERT_EQ(run(call("results")).status, 0);
  EXPECT_EQ(lines("results"), lines("whole"));
  EXPECT_EQ(lines("results.errors"), lines("whole.errors"));
}

TEST_F(Batch, ReadsAPipe) {
  write_requests(20);
  ASSERT_EQ(run(call("results")).status, 0);
  const std::string arguments = "batch -q --seed 3 /dev/stdin -o " + path("piped") + demo;
  ASSERT_EQ(std::system(("cat " + path("in.jsonl") + " | " + program() + " " + arguments).c_str()), 0);
  std::vector<BatchJson> piped = lines("piped"), results = lines("results");
  for (BatchJson& line : piped) line["response"]["body"]["created"] = results[0]["response"]["body"]["created"];
  EXPECT_EQ(piped, results);
  EXPECT_EQ(lines("piped.errors"), lines("results.errors"));
}

TEST_F(Batch, TellsRequestsOfOneNameApart) {
  std::ofstream(path("in.jsonl")) << R"({"custom_id": "twice"})"
                                  << "\n"
                                  << R"({"custom_id": "once"})"
                                  << "\n"
                                  << R"({"custom_id": "twice", "prompt": "a", "max_tokens": 1})"
                                  << "\n";
  for (const char* const expected : {"new", "complete"}) {
    const Outcome outcome = run(call("results"));
    EXPECT_EQ(outcome.status, 0) << expected << ": " << outcome.err;
    EXPECT_EQ(lines("results").size(), 1u);
    EXPECT_EQ(lines("results.errors").size(), 2u);
  }
}

TEST_F(Batch, WaitsForMemoryInsteadOfFailing) {
  write_requests(20);
  ASSERT_EQ(run(call("free")).status, 0);
  ASSERT_EQ(run(call("tight", "--kv-memory 1 --ctx-size 128")).status, 0);
  EXPECT_EQ(lines("tight"), lines("free"));
}

TEST_F(Batch, ASharedPrefixChangesNoText) {
  constexpr std::size_t requests = 6, shared = 200;
  {
    std::ofstream file(path("in.jsonl"));
    for (std::size_t i = 0; i < requests; ++i) {
      std::vector<std::size_t> prompt(shared, 7);
      prompt.insert(prompt.end(), {100 + i, 8, 9});
      file << BatchJson{{"prompt", prompt}, {"max_tokens", 8}} << "\n";
    }
  }
  ASSERT_EQ(run(call("alone", "--parallel 1")).status, 0);
  ASSERT_EQ(run(call("together", "--parallel 6")).status, 0);
  EXPECT_EQ(lines("together"), lines("alone"));
}

TEST_F(Batch, ResultsAreOfTheTimeOfTheRequests) {
  write_requests(2);
  const auto written = std::filesystem::file_time_type::clock::now() - std::chrono::hours(24);
  std::filesystem::last_write_time(path("in.jsonl"), written);
  ASSERT_EQ(run(call("first")).status, 0);
  ASSERT_EQ(run(call("second")).status, 0);
  EXPECT_EQ(lines("first"), lines("second"));
  const std::int64_t created = lines("first")[0]["response"]["body"]["created"];
  EXPECT_NEAR(static_cast<double>(created), static_cast<double>(std::time(nullptr)) - 24 * 3600, 600);
}

TEST_F(Batch, ReadsAGrammarAfterRequestsWithoutOne) {
  {
    std::ofstream file(path("in.jsonl"));
    for (const bool grammar : {false, true, false}) {
      BatchJson body{{"messages", {{{"role", "user"}, {"content", "写诗"}}}}, {"max_tokens", 20}};
      if (grammar) body["response_format"] = {{"type", "json_object"}};
      file << body << "\n";
    }
  }
  ASSERT_EQ(run(call("out")).status, 0);
  const std::vector<BatchJson> results = lines("out");
  ASSERT_EQ(results.size(), 3u);
  const auto answer = [&](std::size_t i) {
    return results[i]["response"]["body"]["choices"][0]["message"]["content"].get<std::string>();
  };
  EXPECT_EQ(answer(1).substr(0, 1), "{");
  EXPECT_NE(answer(0).substr(0, 1), "{");
}

TEST_F(Batch, NamesFieldsThatChangeNothingOnce) {
  std::ofstream file(path("in.jsonl"));
  for (int i = 0; i < 2; ++i) {
    file << R"({"prompt": "", "max_tokens": 2, "cache_prompt": true, "return_token_ids": true, "prompt_logprobs": 0})"
         << "\n";
  }
  file.close();
  const Outcome outcome = run("batch --seed 3 " + path("in.jsonl") + " -o " + path("results") + demo);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const std::string expected = "requests have cache_prompt, which changes nothing here\n";
  const std::size_t first = outcome.err.find(expected);
  ASSERT_NE(first, std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find(expected, first + 1), std::string::npos) << outcome.err;
  const BatchJson choice = lines("results").at(0)["response"]["body"]["choices"][0];
  EXPECT_EQ(choice["prompt_token_ids"].size(), 1u) << choice;
  EXPECT_EQ(choice["token_ids"].size(), 2u);
}

TEST_F(Batch, NamesTheFieldThatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {R"({"prompt": "a", "temperature": "hot"})", "temperature"},
      {R"({"prompt": "a", "top_k": -2})", "top_k"},
      {R"({"prompt": "a", "seed": 1.5})", "seed"},
      {R"({"prompt": "a", "stop": [3]})", "stop"},
      {R"({"prompt": "a", "logit_bias": {"x": 1}})", "logit_bias"},
      {R"({"prompt": "a", "model": "gpt-4"})", "model"},
      {R"({"prompt": "a", "echo": 1})", "echo"},
      {R"({"prompt": "a", "n": 3, "best_of": 2})", "best_of"},
      {R"({"prompt": ["a", "b"]})", "prompt"},
      {R"({"prompt": "a", "stream": true})", "stream"},
      {R"({"prompt": "a", "tempreature": 1})", "tempreature"},
      {R"({"prompt": [1, -1]})", "prompt"},
      {R"({"prompt": []})", "prompt"},
      {R"({"messages": [{"role": "user", "content": "a"}], "tool_choice": "required"})", "tool_choice"},
      {R"({"messages": [{"role": "user", "content": "a"}], "response_format": {"type": "xml"}})", "response_format"},
      {R"({"method": "POST", "url": "/v1/embeddings", "body": {}})", "url"},
      {R"({"model": "minimind"})", "prompt"},
  };
  std::ofstream file(path("in.jsonl"));
  for (const auto& [line, param] : cases) file << line << "\n";
  file << "not JSON\n";
  file.close();
  ASSERT_EQ(run(call("results")).status, 0);
  EXPECT_EQ(lines("results").size(), 0u);
  const std::vector<BatchJson> errors = lines("results.errors");
  ASSERT_EQ(errors.size(), cases.size() + 1);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(errors[i]["response"]["body"]["error"]["param"], cases[i].second) << errors[i];
  }
  EXPECT_EQ(errors.back()["response"]["body"]["error"]["code"], "invalid_json");
}

}  // namespace
}  // namespace minimind
