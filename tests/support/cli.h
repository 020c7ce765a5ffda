#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/golden.h"
#include "tests/support/temporary_file.h"

namespace minimind {

// Returns the path of the program under test.
inline std::string program() {
  const char* given = std::getenv("MINIMIND_PROGRAM");
  return given ? std::filesystem::absolute(given).string() : MINIMIND_SOURCE_DIR "/minimind";
}

struct Outcome {
  int status = 0;
  std::string out, err;
};

// Runs the program end to end, as a user calls it.
class Cli : public testing::Test {
 protected:
  Cli() : folder_(std::filesystem::temp_directory_path() / ("minimind_cli_test_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
    setenv("LC_ALL", "C.UTF-8", 1);  // English, regardless of the locale
  }
  ~Cli() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  // `arguments` are a shell's; standard input is empty unless they redirect it.
  Outcome run(const std::string& arguments, const std::string& environment = "") const {
    const std::string command = environment + " " + program() + " " + arguments + " > " + path("out") + " 2> " +
                                path("err") + (arguments.find('<') == std::string::npos ? " < /dev/null" : "");
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_whole_file(path("out")),
            read_whole_file(path("err"))};
  }

 private:
  std::filesystem::path folder_;
};

// "1,2,3"
inline std::string joined(const std::vector<std::int32_t>& ids) {
  std::string text;
  for (const std::int32_t id : ids) text += (text.empty() ? "" : ",") + std::to_string(id);
  return text;
}

inline std::string model_options(const GoldenCase& golden) {
  return " -m " + golden.model_path + (golden.lora_path ? " --lora " + *golden.lora_path : "") +
         (golden.yarn ? " --rope-scaling yarn" : "");
}

inline const std::string demo = " -m " MINIMIND_SOURCE_DIR "/weights/demo/model.pth";

}  // namespace minimind
