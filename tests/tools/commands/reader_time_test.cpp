#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/chat/chat_json.h"
#include "runtime/tokenizer/tokenizer.h"
#include "runtime/tokenizer/tokenizer_json.h"
#include "tests/support/linear_time.h"
#include "tests/support/little_endian.h"
#include "tests/support/temporary_file.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/torch_archive.h"
#include "tools/commands/npy.h"
#include "weights/gguf/reader.h"
#include "weights/huggingface/folder.h"
#include "weights/huggingface/safetensors.h"
#include "weights/io/json_fields.h"
#include "weights/model/config_json.h"
#include "weights/torch/pth.h"

// What every reader of a file or of a request takes for each byte: as much in 4 MB of a construct as in 1 MB.
namespace minimind {
namespace {

std::string always(std::size_t, const char* text) {
  return text;
}

// Lists and objects of everything in JSON, after `begin` and before `end`.
std::vector<Construct> json_constructs(const std::string& begin, const std::string& end) {
  const auto same = [](const char* text) { return [=](std::size_t i) { return always(i, text); }; };
  return {
      list_of("integers", begin + "[", "]" + end, [](std::size_t i) { return std::to_string(i % 10); }),
      list_of("doubles", begin + "[", "]" + end, same("1.5e3")),
      list_of("empty arrays", begin + "[", "]" + end, same("[]")),
      list_of("empty objects", begin + "[", "]" + end, same("{}")),
      list_of("small objects", begin + "[", "]" + end, same(R"({"a":1,"b":2})")),
      list_of("objects of small objects", begin + "{", "}" + end,
              [](std::size_t i) { return fmt::format(R"("k{}":{{"a":1}})", i); }),
      list_of("many keys", begin + "{", "}" + end, [](std::size_t i) { return fmt::format(R"("k{}":1)", i); }),
      list_of("one key again and again", begin + "{", "}" + end, same(R"("k":1)")),
      list_of("keys of a long common prefix", begin + "{", "}" + end,
              [](std::size_t i) { return fmt::format(R"("{}{}":1)", std::string(200, 'p'), i); }),
      list_of("nested arrays", begin + "[", "]" + end, same("[[[[[[[[[[[]]]]]]]]]]]")),
      list_of("strings", begin + "[", "]" + end, same(R"("abc")")),
      list_of("long strings", begin + "[", "]" + end, same(R"("abcdefghijklmnopqrstuvwxyz0123456789")")),
      {"one string", [=](std::size_t bytes) { return begin + "\"" + std::string(bytes, 'x') + "\"" + end; }},
      {"escapes", [=](std::size_t bytes) { return joined(bytes, begin + "\"", "", "\"" + end, same(R"(\u00e4)")); }},
      {"a growing nest",
       [=](std::size_t bytes) {
         std::string inner = "1";
         for (int level = 0; level < 10; ++level) {
           inner = fmt::format(R"({{"a":{},"b":{}}})", inner,
                               joined(bytes / 11, "[", ",", "]", [](std::size_t) { return "2"; }));
         }
         return begin + inner + end;
       }},
  };
}

// Some of them, for readers that give their text to parse_json.
std::vector<Construct> some_json_constructs(const std::string& begin, const std::string& end) {
  std::vector<Construct> some;
  for (const Construct& construct : json_constructs(begin, end)) {
    for (const char* name : {"integers", "objects of small objects", "long strings"}) {
      if (construct.name == name) some.push_back(construct);
    }
  }
  return some;
}

TEST(ReaderTime, JsonIsLinear) {
  const auto constructs = some_json_constructs("", "");
  expect_linear("parse_json<json>", constructs,
                [](const std::string& text) { parse_json<nlohmann::json>(text, "x", 16, "JSON"); });
  expect_linear("parse_json<ordered_json>", constructs,
                [](const std::string& text) { parse_json<nlohmann::ordered_json>(text, "x", 16, "JSON"); });
}

TEST(ReaderTime, BodiesOfRequestsAreLinear) {
  expect_linear("parse_chat_json", json_constructs(R"({"messages":[],"metadata":)", "}"),
                [](const std::string& text) { parse_chat_json(text, "x"); });
}

TEST(ReaderTime, ConfigsAreLinear) {
  auto constructs = some_json_constructs(R"({"model_type":"minimind","x":)", "}");
  constructs.push_back(list_of("unknown settings", R"({"model_type":"minimind",)", "}",
                               [](std::size_t i) { return fmt::format(R"("setting_{}":1)", i); }));
  constructs.push_back(list_of("ends of text", R"({"eos_token_id":[)", "]}", [](std::size_t) { return "1"; }));
  expect_linear("config.json", constructs, [](const std::string& text) { parse_config_json(text, "x"); });
}

TEST(ReaderTime, ShardIndexesAreLinear) {
  const TemporaryFolder folder;
  auto constructs = some_json_constructs(R"({"weight_map":)", "}");
  constructs.push_back(list_of("tensors of one shard", R"({"weight_map":{)", "}}",
                               [](std::size_t i) { return fmt::format(R"("model.layers.{}.weight":"a")", i); }));
  constructs.push_back(list_of("tensors of many shards", R"({"weight_map":{)", "}}",
                               [](std::size_t i) { return fmt::format(R"("model.layers.{}.weight":"{}")", i, i); }));
  expect_linear("model.safetensors.index.json", constructs, [&](const std::string& text) {
    folder.write("model.safetensors.index.json", text);
    read_hf_folder(folder.path());
  });
}

std::string safetensors_of(const std::string& header) {
  return little_endian(std::uint64_t{header.size()}) + header + std::string(header.size(), '\0');
}

TEST(ReaderTime, SafetensorsHeadersAreLinear) {
  auto constructs = some_json_constructs(R"({"w":)", "}");
  const auto entry = [](std::size_t i) {
    return fmt::format(
        R"("model.layers.{}.self_attn.q_proj.weight":{{"dtype":"U8","shape":[1],"data_offsets":[{},{}]}})", i, i,
        i + 1);
  };
  constructs.push_back(list_of("tensors", "{", "}", entry));
  constructs.push_back(list_of("metadata", R"({"__metadata__":{)", "}}",
                               [](std::size_t i) { return fmt::format(R"("key{}":"value")", i); }));
  constructs.push_back(list_of("dimensions", R"({"w":{"dtype":"U8","shape":[)", R"(],"data_offsets":[0,1]}})",
                               [](std::size_t) { return "1"; }));
  const TemporaryFile file;
  expect_linear("safetensors", constructs, [&](const std::string& text) {
    file.write(safetensors_of(text));
    read_safetensors(file.open());
  });
}

std::string gguf_text(const std::string& text) {
  return little_endian(std::uint64_t{text.size()}) + text;
}

// A GGUF with one array of `type`.
Construct gguf_array(const char* name, std::uint32_t type, const std::string& element) {
  return {name, [=](std::size_t bytes) {
            const std::size_t count = bytes / element.size();
            std::string file = "GGUF" + little_endian(std::uint32_t{3}) + little_endian(std::uint64_t{0}) +
                               little_endian(std::uint64_t{1}) + gguf_text("k") + little_endian(std::uint32_t{9}) +
                               little_endian(type) + little_endian(std::uint64_t{count});
            for (std::size_t i = 0; i < count; ++i) file += element;
            return file;
          }};
}

// A GGUF with `count` tensors or keys, each described by item(i).
template <class Item>
Construct gguf_list(const char* name, bool tensors, std::size_t item_size, Item item) {
  return {name, [=](std::size_t bytes) {
            const std::uint64_t count = bytes / item_size;
            std::string file = "GGUF" + little_endian(std::uint32_t{3}) + little_endian(tensors ? count : 0) +
                               little_endian(tensors ? std::uint64_t{0} : count);
            for (std::uint64_t i = 0; i < count; ++i) file += item(i);
            return tensors ? file + std::string(64 + 32 * count, '\0') : file;
          }};
}

TEST(ReaderTime, GgufHeadersAreLinear) {
  const std::vector<Construct> constructs{
      gguf_array("u8", 0, "\x01"),
      gguf_array("i16", 3, std::string(2, '\x01')),
      gguf_array("f32", 6, std::string(4, '\0')),
      gguf_array("bool", 7, "\x01"),
      gguf_array("u64", 10, std::string(8, '\0')),
      gguf_array("empty strings", 8, gguf_text("")),
      gguf_array("strings", 8, gguf_text("abcdef")),
      gguf_array("long strings", 8, gguf_text(std::string(40, 'x'))),
      gguf_array("arrays of arrays", 9, std::string(12, '\0')),
      gguf_list("keys", false, 1024,
                [](std::uint64_t i) {
                  return gguf_text(fmt::format("{:01008}", i)) + little_endian(std::uint32_t{4}) + std::string(4, '\0');
                }),
      gguf_list("long keys", false, 16384,
                [](std::uint64_t i) {
                  return gguf_text(fmt::format("{:016368}", i)) + little_endian(std::uint32_t{4}) +
                         std::string(4, '\0');
                }),
      gguf_list("tensors", true, 100, [](std::uint64_t i) {
        return gguf_text(fmt::format("{:064}", i)) + little_endian(std::uint32_t{1}) + little_endian(std::uint64_t{1}) +
               little_endian(std::uint32_t{0}) + little_endian(std::uint64_t{32 * i});
      })};
  const TemporaryFile file;
  expect_linear("GGUF", constructs, [&](const std::string& bytes) {
    file.write(bytes);
    read_gguf(file.open());
  });
}

// A pickle that consists of one opcode, or of a few, again and again.
Construct pickle_of(const char* name, const std::string& begin, const std::string& item, const std::string& end) {
  return {name, [=](std::size_t bytes) { return joined(bytes, begin, "", end, [&](std::size_t) { return item; }); }};
}

TEST(ReaderTime, PicklesAreLinear) {
  using pickle_writer::tensor;
  using pickle_writer::text;
  const auto entry = [](std::size_t i) {
    return text(fmt::format("layers.{}.weight", i)) + tensor({.storage_elements = 1, .shape = {1}, .strides = {1}});
  };
  const std::string ordered = pickle_writer::global("collections", "OrderedDict");
  const std::vector<Construct> constructs{
      pickle_of("None", "](", "N", "e"),
      pickle_of("integers", "](", "K\x01", "e"),
      pickle_of("long integers", "](", "\x8a\x20" + std::string(32, '\x11'), "e"),
      pickle_of("decimals", "](", "I17\n", "e"),
      pickle_of("bytes", "](", "C\x10" + std::string(16, 'x'), "e"),
      pickle_of("strings", "](", text("abc"), "e"),
      pickle_of("long strings", "](", text(std::string(300, 'x')), "e"),
      pickle_of("strings of protocol 0", "](", "Vabcdef\n", "e"),
      pickle_of("lists", "](", "]", "e"),
      pickle_of("appended items", "]", "Na", ""),
      pickle_of("nested lists", "", "](", ""),
      pickle_of("nested tuples", "N", "\x85", ""),
      pickle_of("dicts", "](", "}K\x01Ns", "e"),
      pickle_of("keys of a dict", "}", "K\x01Ns", ""),
      pickle_of("ordered dicts", "](", ordered + ")R", "e"),
      pickle_of("memo", "]q\x01(", "h\x01", "e"),
      pickle_of("memo entries", "", "]\x94", ""),
      pickle_of("names", "](", pickle_writer::global("torch", "float32"), "e"),
      pickle_of("objects", "](", "(N" + std::string("icollections\nCounter\n"), "e"),
      pickle_of("copies of one value", "N", "20", ""),
      {"tensors", [&](std::size_t bytes) { return joined(bytes, "}(", "", "u", entry); }},
  };
  const TemporaryFile file;
  expect_linear(".pth", constructs, [&](const std::string& body) {
    file.write(torch_zip(body, {{"0", std::string(4, '\0')}}));
    read_pth(file.open());
  });
  const std::vector<Construct> some{constructs.front(), constructs.back()};
  expect_linear("legacy .pth", some, [&](const std::string& body) {
    file.write(torch_legacy(body, {{"0", std::string(4, '\0')}}));
    read_pth(file.open());
  });
}

TEST(ReaderTime, ZipDirectoriesAreLinear) {
  const auto members = [](std::size_t bytes) {
    ZipWriter writer;
    for (std::size_t i = 0; i < bytes / 100; ++i) writer.add(fmt::format("model/data/{}", i), "1234");
    return writer.finish_zip64();
  };
  const TemporaryFile file;
  expect_linear(".pth", {{"members", members}}, [&](const std::string& bytes) {
    file.write(bytes);
    read_pth(file.open());
  });
}

std::string tokenizer_json_of(const std::string& model, const std::string& added = "") {
  return R"({"version":"1.0","added_tokens":[)" + added + R"(],"normalizer":null,"post_processor":null,)" +
         R"("pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},"decoder":{"type":"ByteLevel"},)" +
         R"("model":{"type":"BPE",)" + model + "}}";
}

TEST(ReaderTime, TokenizersAreLinear) {
  auto constructs = some_json_constructs(R"({"version":"1.0","model":)", "}");
  const auto token = [](std::size_t i) { return fmt::format(R"("t{}":{})", i, i); };
  const auto vocab = [=](std::size_t bytes) { return joined(bytes, R"("vocab":{)", ",", "}", token); };
  const auto merges = [](std::size_t bytes, const char* merge) {
    return joined(bytes, R"("merges":[)", ",", "]", [=](std::size_t) { return merge; });
  };
  constructs.push_back({"tokens", [=](std::size_t n) { return tokenizer_json_of(vocab(n) + R"(,"merges":[])"); }});
  constructs.push_back({"merges", [=](std::size_t n) {
                          return tokenizer_json_of(R"("vocab":{"a":0,"b":1,"ab":2},)" + merges(n, R"("a b")"));
                        }});
  constructs.push_back(
      {"pairs", [=](std::size_t n) { return tokenizer_json_of(R"("vocab":{"a":0},)" + merges(n, R"(["a","b"])")); }});
  constructs.push_back({"tokens and merges", [=](std::size_t n) {
                          return tokenizer_json_of(vocab(n / 2) + "," +
                                                   joined(n / 2, R"("merges":[)", ",", "]", [](std::size_t i) {
                                                     return fmt::format(R"("t{} t{}")", i, i + 1);
                                                   }));
                        }});
  const auto added = [](std::size_t i) {
    return fmt::format(R"({{"id":{0},"content":"<{0}>","single_word":false,"lstrip":false,"rstrip":false,)"
                       R"("normalized":false,"special":true}})",
                       i);
  };
  constructs.push_back({"added tokens", [=](std::size_t n) {
                          return tokenizer_json_of(R"("vocab":{},"merges":[])", joined(n, "", ",", "", added));
                        }});
  const TemporaryFolder folder;
  expect_linear("tokenizer.json", constructs, [&](const std::string& text) {
    const Tokenizer tokenizer(read_tokenizer_json(folder.write("tokenizer.json", text)));
  });
}

TEST(ReaderTime, NpyHeadersAreLinear) {
  const auto header = [](std::size_t bytes) {
    return "\x93NUMPY\x02" + std::string(1, '\0') + little_endian(static_cast<std::uint32_t>(bytes)) +
           std::string(bytes, '(');
  };
  const TemporaryFile file;
  expect_linear(".npy", {{"brackets", header}}, [&](const std::string& bytes) {
    file.write(bytes);
    const NpyReader reader(file.path());
  });
}

}  // namespace
}  // namespace minimind
