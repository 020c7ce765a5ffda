#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/attack.h"
#include "tests/support/pickle_writer.h"
#include "tests/support/stored.h"
#include "tests/support/temporary_file.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/torch_archive.h"
#include "weights/checkpoint/checkpoint.h"

// Pickles that run a program in Python when they are loaded. README.md in this folder lists them.
namespace minimind {
namespace {

using namespace std::string_literals;
using pickle_writer::global;
using pickle_writer::text;
using pickle_writer::tuple;

constexpr std::string_view not_weights = "which is not a part of plain weights; nothing was executed";

// A program that would leave a file behind, as the argument of what the pickle calls.
class PickleAttack : public testing::Test {
 protected:
  ~PickleAttack() override { EXPECT_FALSE(std::filesystem::exists(proof_)) << "the pickle was executed"; }

  std::string command() const { return text("touch " + proof_); }
  std::string call(std::string_view module, std::string_view name) const {
    return global(module, name) + tuple({command()}) + "R";
  }

  // Expects both formats of torch.save to be refused with `payload` next to a tensor.
  static void expect_both_refused(const std::string& payload, std::string_view reason) {
    const std::string body = "}" + text("x") + payload + "s";
    for (const std::string& bytes : {torch_zip(body, {}), torch_legacy(body, {})}) expect_file_refused(bytes, reason);
  }

  const TemporaryFolder folder_;
  const std::string proof_ = folder_.path() + "/proof";
};

// What malicious packages on PyPI and models on Hugging Face's hub called, and what went past scanners of pickles.
TEST_F(PickleAttack, CallablesOfKnownBadFilesAreRefusedByName) {
  const std::vector<std::pair<std::string, std::string>> callables = {
      {"os", "system"},     // the example of Python's own documentation
      {"posix", "system"},  // what os.system is pickled as on Linux
      {"nt", "system"},     // and on Windows
      {"os", "popen"},
      {"os", "execv"},
      {"subprocess", "Popen"},
      {"subprocess", "check_output"},
      {"builtins", "exec"},  // aliyun-ai-labs-snippets-sdk on PyPI, 2025
      {"builtins", "eval"},
      {"builtins", "compile"},
      {"builtins", "__import__"},
      {"builtins", "getattr"},
      {"builtins", "open"},
      {"__builtin__", "eval"},  // Python 2's name of the module
      {"__builtin__", "apply"},
      {"runpy", "_run_code"},  // baller423/goober2 on the hub, 2024
      {"importlib", "import_module"},
      {"pip", "main"},  // CVE-2025-1716, picklescan
      {"pip._internal", "main"},
      {"asyncio.unix_events", "_UnixSubprocessTransport._start"},  // CVE-2025-10157, picklescan: submodules
      {"timeit", "timeit"},
      {"pydoc", "pipepager"},
      {"cProfile", "runctx"},
      {"bdb", "Bdb.run"},
      {"code", "InteractiveInterpreter.runcode"},
      {"ensurepip", "_run_pip"},
      {"idlelib.run", "Executive.runcode"},
      {"lib2to3.pgen2.pgen", "ParserGenerator.make_label"},
      {"numpy.testing._private.utils", "runstring"},
      {"numpy.f2py.crackfortran", "myeval"},
      {"torch.hub", "load"},
      {"torch", "load"},
      {"torch.utils.collect_env", "run"},
      {"torch.jit.unsupported_tensor_ops", "execWrapper"},
      {"torch.fx.experimental.symbolic_shapes", "ShapeEnv.evaluate_guards_expression"},
      {"torch._utils", "_rebuild_device_tensor_from_numpy"},
      {"torch._tensor", "_rebuild_from_type_v2"},
      {"torch.storage", "_load_from_bytes"},  // unpickles its argument without restriction
      {"pickle", "loads"},
      {"_pickle", "loads"},
      {"marshal", "loads"},
      {"dill", "loads"},
      {"joblib", "load"},
      {"types", "FunctionType"},
      {"types", "CodeType"},
      {"functools", "partial"},
      {"functools", "reduce"},
      {"operator", "attrgetter"},
      {"operator", "methodcaller"},
      {"ctypes", "CDLL"},
      {"shutil", "rmtree"},
      {"socket", "create_connection"},  // a connection back to the attacker
      {"urllib.request", "urlopen"},
      {"webbrowser", "open"},
      {"sys", "modules"},
      {"copyreg", "add_extension"},
      {"logging.config", "_resolve"},
      {"site", "execsitecustomize"},
      {"distutils.file_util", "write_file"},
  };
  for (const auto& [module, name] : callables) {
    SCOPED_TRACE(module + "." + name);
    expect_both_refused(call(module, name), not_weights);
  }
}

TEST_F(PickleAttack, DottedNamesThatReachThroughAnAllowedOneAreRefused) {
  for (const auto& [module, name] : std::vector<std::pair<std::string, std::string>>{
           {"collections", "OrderedDict.__reduce__.__globals__"},
           {"torch.storage", "UntypedStorage.__init__.__globals__"},
           {"torch._utils", "_rebuild_tensor_v2.__globals__"},
           {"torch._utils", "sys.modules"},
           {"torch", "os.system"},
           {"numpy.core.multiarray", "scalar.__class__"},
           {"_codecs", "encode.__self__"},
           {"collections.OrderedDict", ""},
           {"", "collections.OrderedDict"},
       }) {
    SCOPED_TRACE(module + "." + name);
    expect_both_refused(call(module, name), "refers to");
  }
}

// The other opcodes that call: INST, OBJ, NEWOBJ and NEWOBJ_EX.
TEST_F(PickleAttack, EveryOpcodeThatCallsIsRefused) {
  expect_both_refused("(" + command() + "ios\nsystem\n", not_weights);
  expect_both_refused("(" + global("os", "system") + command() + "o", not_weights);
  expect_both_refused(global("subprocess", "Popen") + tuple({command()}) + "\x81", not_weights);
  expect_both_refused(global("subprocess", "Popen") + tuple({command()}) + "}\x92", not_weights);
  expect_both_refused(global("collections", "OrderedDict") + ")}\x92", "is not an opcode of plain data");
}

// Scanners that look for the last two strings before STACK_GLOBAL miss names that come out of the memo.
TEST_F(PickleAttack, NamesThatComeOutOfTheMemoAreRefused) {
  const std::string hidden = text("system") + "\x94" + text("os") + "\x94";
  expect_both_refused(
      hidden + text("collections") + text("OrderedDict") + "00" + "h\x01h\x00\x93"s + tuple({command()}) + "R",
      not_weights);
  // The same with DUP, and with names that are dropped in between.
  expect_both_refused(
      text("os") + "2" + "0" + text("system") + text("weights") + "0" + "\x93" + tuple({command()}) + "R", not_weights);
  // The memo entry is overwritten after a harmless use.
  expect_both_refused(text("collections") + "q\x05" + text("OrderedDict") + "\x93" + "0" + text("os") + "q\x05" + "0" +
                          "h\x05" + text("system") + "\x93" + tuple({command()}) + "R",
                      not_weights);
}

// nullifAI on the hub, 2025: the call comes first, and the rest of the file is broken.
TEST_F(PickleAttack, BrokenPicklesAreRefusedAtTheCallBeforeTheBreak) {
  const std::string bad = call("posix", "system");
  for (const std::string& broken : {"\xFF"s, "X\xFF\xFF\xFF\xFF"s, "R"s, ""s})
    expect_both_refused(bad + broken, not_weights);
  expect_file_refused("\x80\x02" + bad + "\xFF", "is neither a torch.save file");
}

TEST_F(PickleAttack, APickleInAPickleStaysBytes) {
  const std::string inner = pickle_writer::document(call("os", "system"));
  const std::string bytes = "B" + little_endian(static_cast<std::uint32_t>(inner.size())) + inner;
  expect_both_refused(global("pickle", "loads") + tuple({bytes}) + "R", not_weights);
  expect_both_refused(bytes, "is of type bytes, expected a tensor");
}

TEST_F(PickleAttack, GetattrChainsAreRefused) {
  const std::string import_os = global("builtins", "__import__") + tuple({text("os")}) + "R";
  expect_both_refused(
      global("builtins", "getattr") + tuple({import_os, text("system")}) + "R" + tuple({command()}) + "R", not_weights);
  // Without a name that is not allowed, there is nothing to call.
  expect_both_refused(
      global("_codecs", "encode") + tuple({text("os"), text("latin1")}) + "R" + tuple({command()}) + "R",
      "is called with a tuple; nothing was executed");
}

// Codes of copyreg's registry of extensions stand for callables that the pickle does not name.
TEST_F(PickleAttack, ExtensionCodesAreRefused) {
  for (const std::string& extension : {"\x82\x01"s, "\x83\x01\x00"s, "\x84\x01\x00\x00\x00"s}) {
    expect_both_refused(extension + tuple({command()}) + "R", "is not an opcode of plain data");
  }
}

// BUILD calls __setstate__, or sets attributes such as __class__.
TEST_F(PickleAttack, StateOfAnObjectIsNeverSet) {
  const std::string state = "}" + text("__setstate__") + global("collections", "OrderedDict") + "s";
  expect_both_refused(text("a") + state + "b", "state is set on");
  expect_both_refused(global("collections", "OrderedDict") + state + "b", "state is set on");
  expect_both_refused(global("argparse", "Namespace") + ")R}" + text("__class__") + global("os", "system") + "sb",
                      not_weights);
}

// CVE-2025-32434: torch.load(weights_only=True) read its oldest format, a tar archive, without restrictions.
TEST_F(PickleAttack, TheTarFormatOfOldTorchIsNotRead) {
  std::string header("pickle");
  header.resize(100);
  header += "0000644\0"s + "0000000\0"s + "0000000\0"s + "00000000100\0"s + "00000000000\0"s + "        0"s;
  header.resize(257);
  header += "ustar\0"s + "00"s;
  header.resize(512);
  std::string content = pickle_writer::document(call("os", "system"));
  content.resize(512);
  expect_file_refused(header + content + std::string(1024, '\0'), "is an archive (tar)");
}

// CVE-2026-24747: weights_only wrote into values of another type than SETITEM and SETITEMS are for, and into storages
// that were smaller than stated.
TEST_F(PickleAttack, ItemsAreNeverSetOnAnythingButADict) {
  const std::string storage = tuple({text("storage"), global("torch", "FloatStorage"), text("0"), text("cpu"),
                                     pickle_writer::integer(1 << 20)}) +
                              "Q";
  for (const std::string& target : {storage, tuple({}), "]"s, text("a"), global("torch", "FloatStorage"), "K\x01"s}) {
    expect_both_refused(target + text("k") + text("v") + "s", "items are added to a");
    expect_both_refused(target + "(" + text("k") + text("v") + "u", "items are added to a");
  }
  const pickle_writer::TensorFields fields{.storage_elements = 1 << 20, .shape = {1 << 20}, .strides = {1}};
  expect_file_refused(torch_zip("}" + text("w") + pickle_writer::tensor(fields) + "s", {{"0", "12345678"}}),
                      "should be 1048576 elements of f32 and has 8 bytes");
}

// Allowed names are recorded, not called: a large argument takes no memory.
TEST_F(PickleAttack, BombsOfAllowedCallsTakeNoMemory) {
  const std::string huge = pickle_writer::integer(std::int64_t{1} << 46);
  expect_both_refused(global("builtins", "bytearray") + tuple({huge}) + "R", "expected a tensor");
  std::string many;
  for (int i = 0; i < 100'000; ++i) many += global("builtins", "bytearray") + "K\x09\x85R0";
  expect_both_refused(many + "N", "expected a tensor");
}

// Billion laughs: a list of two of a list of two of ..., by DUP and by the memo.
TEST_F(PickleAttack, ValuesSharedManyTimesTakeNoMemory) {
  std::string dup = "]", memo = "]q\x00"s;
  for (int i = 0; i < 200; ++i) {
    dup += "2\x86";
    memo += "h\x00\x86q\x00"s;
  }
  expect_both_refused(dup, "is of type tuple, expected a tensor");
  expect_both_refused(memo, "is of type tuple, expected a tensor");
  // A dict that contains itself.
  expect_both_refused("}q\x07" + text("a") + "h\x07s", "is of type dict, expected a tensor");
}

// A small file whose tensors are all views of one storage must not become a model of any size.
TEST_F(PickleAttack, ManyTensorsOfOneStorageDoNotMultiplyIt) {
  constexpr std::int64_t size = 512, elements = size * size;
  std::string body = "}(";
  const auto add = [&](const std::string& name, const std::vector<std::int64_t>& shape) {
    const std::vector<std::int64_t> strides =
        shape.size() == 2 ? std::vector<std::int64_t>{size, 1} : std::vector<std::int64_t>{1};
    body += text("model." + name) +
            pickle_writer::tensor({.storage_elements = elements, .shape = shape, .strides = strides});
  };
  add("embed_tokens.weight", {size, size});
  add("norm.weight", {size});
  for (int layer = 0; layer < 3000; ++layer) {
    const std::string prefix = "layers." + std::to_string(layer) + ".";
    for (const char* const name : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
                                   "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"}) {
      add(prefix + name + ".weight", {size, size});
    }
    for (const char* const name : {"input_layernorm", "post_attention_layernorm"})
      add(prefix + name + ".weight", {size});
  }
  expect_file_refused(torch_zip(body + "u", {{"0", std::string(elements * sizeof(float), '\0')}}),
                      "is one tensor too many that shares its storage with others");
}

}  // namespace
}  // namespace minimind
