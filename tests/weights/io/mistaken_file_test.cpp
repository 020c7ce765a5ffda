// Mistaken paths instead of a model, and their errors.

#include "weights/io/input_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/cli.h"
#include "tests/support/temporary_folder.h"
#include "weights/base/error.h"
#include "weights/io/mistaken_path.h"

namespace minimind {
namespace {

const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 52049234\n";
const std::string page = "\n<!DOCTYPE html>\n<html><head><title>Sign in</title></head></html>\n";

class MistakenFile : public Cli {
 protected:
  std::string write(const std::string& name, std::string_view content) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }

  void expect_error(int status, const std::string& arguments, const std::vector<std::string>& parts,
                    const std::string& environment = "") const {
    const Outcome outcome = run(arguments, environment);
    EXPECT_EQ(outcome.status, status) << arguments << ": " << outcome.out;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << arguments << ": " << outcome.err;
    for (const std::string& part : parts) {
      EXPECT_NE(outcome.err.find(part), std::string::npos) << arguments << ": " << outcome.err;
    }
  }
};

const std::string tokenizer_option = " --tokenizer " MINIMIND_SOURCE_DIR "/weights/demo";

TEST_F(MistakenFile, AGitLfsPointerIsNamedInsteadOfAnyFile) {
  const std::vector<std::string> parts{"Git LFS pointer", "52049234", "git lfs pull"};
  const std::string file = write("model.pth", pointer), lora = write("lora.pth", pointer);
  for (const char* command : {"inspect -m ", "generate -p a -m ", "chat -p a -m ", "perplexity -p a -m ",
                              "logits --tokens 1 -o x.npy -m ", "bench -m "}) {
    expect_error(1, command + file + (std::string(command).starts_with("chat") ? tokenizer_option : ""), parts);
  }
  expect_error(1, "convert " + file + " " + path("x.gguf"), parts);
  expect_error(1, "inspect --lora " + lora + demo, {"lora.pth: is a Git LFS pointer"});
  expect_error(1, "inspect --config " + write("config.json", pointer) + demo, {"config.json: is a Git LFS pointer"});
  expect_error(1, "tokenize -p a --tokenizer " + write("tokenizer.json", pointer), parts);
  const std::string data = write("data.jsonl", pointer);
  for (const char* command : {"perplexity -q --jsonl -f ", "render --jsonl -f ", "render -f "}) {
    expect_error(1, command + data, {"data.jsonl: is a Git LFS pointer"});
  }
  write("folder/model.safetensors", pointer);
  expect_error(1, "inspect -m " + path("folder"), {"model.safetensors: is a Git LFS pointer"});
}

TEST_F(MistakenFile, AWrongLineIsNamedWithItsFile) {
  const std::string data = write("data.jsonl", "\n{\"a\": 1}\n");
  expect_error(1, "perplexity -q --jsonl -f " + data, {"data.jsonl: line 2 "});
  expect_error(1, "render --jsonl -f " + data, {"data.jsonl: line 2: "});
  expect_error(1, "perplexity -q --jsonl -f " + write("empty.jsonl", ""), {"empty.jsonl: is empty", "expected"});
}

TEST_F(MistakenFile, AWebPageIsNamedWithItsSize) {
  for (const char* name : {"model.pth", "model.gguf", "model.safetensors"}) {
    expect_error(1, "inspect -m " + write(name, page), {name, "web page of " + std::to_string(page.size()) + " bytes"});
  }
  expect_error(1, "inspect -m " + write("a.bin", "\xEF\xBB\xBF<?xml version=\"1.0\"?><Error/>"), {"web page"});
  expect_error(1, "tokenize -p a --tokenizer " + write("tokenizer.json", page), {"tokenizer.json: is a web page"});
  EXPECT_EQ(run("perplexity -q -f " + write("page.html", page) + demo).status, 0) << "a text may be a page";
}

TEST_F(MistakenFile, TextInsteadOfAModelIsShown) {
  expect_error(1, "inspect -m " + write("model.pth", "Entry not found"), {"starts with 'Entry not found'"});
}

TEST_F(MistakenFile, AnArchiveIsToBeUnpacked) {
  using namespace std::string_view_literals;
  for (const auto& [content, format] : {std::pair{"\x1f\x8b\x08\0\0\0\0\0\0\x03xyz"sv, "gzip"},
                                        {"7z\xbc\xaf\x27\x1c\0\x04"sv, "7z"},
                                        {"\xfd\x37zXZ\0\0\x04"sv, "xz"},
                                        {"\x1f\x8b\x08"sv, "gzip"},
                                        {"BZh91AY&SY\0"sv, "bzip2"},
                                        {"\x28\xb5\x2f\xfd\0"sv, "zstd"},
                                        {"Rar!\x1a\x07\x01\0"sv, "rar"}}) {
    expect_error(1, "inspect -m " + write("model.pth", content), {format, "unpack"});
  }
  ASSERT_EQ(std::system(("cd " + path("") + " && echo x > a && python3 -m zipfile -c model.zip a").c_str()), 0);
  expect_error(1, "inspect -m " + path("model.zip"), {"unpack an archive"});
}

TEST_F(MistakenFile, AFileThatEndsInAnArchivesFirstBytesIsNoArchive) {
  using namespace std::string_view_literals;
  for (const std::string_view content : {"\x1f\x8b"sv, "BZh"sv, "BZh9"sv, "BZh9 is no archive"sv, "Rar!"sv}) {
    expect_error(1, "inspect -m " + write("model.pth", content), {"model.pth: is neither a torch.save file"});
  }
}

TEST_F(MistakenFile, AnUnfinishedDownloadIsNamed) {
  for (const char* suffix : {".crdownload", ".part"}) {
    expect_error(1, "inspect -m " + write(std::string("model.pth") + suffix, "PK\x03\x04"), {"unfinished", suffix});
  }
}

TEST_F(MistakenFile, ANameOnAHubIsRecognised) {
  for (const char* command : {"inspect -m ", "tokenize -p a -m ", "render -p a -m ", "chat -p a -m "}) {
    expect_error(1, std::string(command) + "jingyaogong/MiniMind2-v1.5",
                 {"hf download jingyaogong/MiniMind2-v1.5 --local-dir MiniMind2-v1.5", "modelscope download"});
  }
  expect_error(1, "convert gongjy/MiniMind2 " + path("x.gguf"), {"modelscope download --model gongjy/MiniMind2"});
  expect_error(1, "tokenize -p a --tokenizer jingyaogong/MiniMind2", {"hf download"});
  expect_error(1, "inspect -m https://huggingface.co/jingyaogong/MiniMind2", {"address", "download"});
  std::filesystem::create_directories(path("saved"));
  for (const char* name :
       {"saved/full_sft_768", "none/full_sft_768.pth", "/a/b", "a/b/c", "./a", "a/-b", "a/ b", "a/", "missing"}) {
    const Outcome outcome = run(std::string("inspect -m '") + name + "'", "cd " + path("") + ";");
    EXPECT_EQ(outcome.err.find("hf download"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("No such file"), std::string::npos) << outcome.err;
  }
}

TEST_F(MistakenFile, ATildeThatTheShellLeftIsExplained) {
  for (const char* arguments : {"inspect -m '~/x.pth'", "inspect --config '~/x.pth'", "inspect --lora '~/x.pth'",
                                "inspect --tokenizer '~/x.pth'"}) {
    expect_error(1, std::string(arguments) + (std::string(arguments).find("-m") == std::string::npos ? demo : ""),
                 {"\"$HOME/x.pth\""});
  }
  expect_error(1, "inspect -m '~user/x.pth'", {"replace ~user"});
  expect_error(1, "convert " MINIMIND_SOURCE_DIR "/weights/demo/model.pth '~/x/' -q", {"\"$HOME/x\""});
}

TEST_F(MistakenFile, ALinkToNothingIsCalledSo) {
  std::filesystem::create_symlink(path("gone.pth"), path("link.pth"));
  expect_error(1, "inspect -m " + path("link.pth"), {"link to a file that does not exist"});
}

TEST(CheckPath, LeavesToTheSystemWhatIsNotMissing) {
  const TemporaryFolder folder;
  const std::string loop = folder.path() + "/loop", file = folder.write("file", "a");
  std::filesystem::create_symlink("loop", loop);
  EXPECT_EQ(error_of([&] { check_path(loop); }), "") << "opening it says why it fails";
  EXPECT_NE(error_of([&] { InputFile::open(loop); }).find("Too many levels"), std::string::npos);
  EXPECT_EQ(error_of([&] { check_path(file + "/model.pth"); }),
            file + "/model.pth: cannot be opened: No such file or directory");
}

TEST(CheckNotMistaken, APointerNeedNotStateASize) {
  for (const std::string start : {"version https://hawser.github.com/spec/v1\n", "version https://git-lfs\nsize x\n"}) {
    EXPECT_EQ(error_of([&] { check_not_mistaken(start, 99, "x"); }),
              "x: is a Git LFS pointer of 99 bytes, expected the file itself; run git lfs pull in its folder, or "
              "download the file itself");
  }
}

TEST(ShownText, IsOfFilesThatStartWithText) {
  EXPECT_EQ(shown_text(as_bytes("Not found\nat all")), " and starts with 'Not found'");
  for (const char* other : {"", "\nlater", "\x01\x02"}) EXPECT_EQ(shown_text(as_bytes(other)), "");
}

TEST(CheckNotMistaken, LeavesModelsAlone) {
  using namespace std::string_view_literals;
  for (const auto content : {"\x1f\x8b\x08\0\0\0\0\0{\"__metadata__\":"sv, "PK\x03\x04"sv, "GGUF"sv, "{}"sv, ""sv}) {
    EXPECT_NO_THROW(check_not_mistaken(content, content.size(), "x")) << content;
  }
}

}  // namespace
}  // namespace minimind
