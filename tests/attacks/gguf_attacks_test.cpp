#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/tokenizer/files.h"
#include "tests/support/attack.h"
#include "tests/support/gguf_bytes.h"
#include "tests/support/temporary_file.h"
#include "weights/checkpoint/open_checkpoint.h"

// GGUF files that crashed llama.cpp or ollama. README.md in this folder lists them.
namespace minimind {
namespace {

using namespace std::string_literals;

constexpr std::uint32_t u32 = 4, text_type = 8, array_type = 9, u64 = 10;

// Expects that neither the model nor the tokenizer in the file is read.
void expect_gguf_refused(const std::string& bytes, std::string_view reason) {
  const TemporaryFile file(bytes);
  expect_refused([&] { open_checkpoint(file.path(), {}); }, reason);
  expect_refused([&] { load_tokenizer(file.path()); }, "");
}

std::string little_number(std::uint32_t value) {
  return little_endian(value);
}

// The metadata of a model without tensors.
GgufBytes llama() {
  GgufBytes file;
  file.key("general.architecture", text_type, gguf_text("llama"))
      .key("llama.block_count", u32, little_number(2))
      .key("llama.embedding_length", u32, little_number(8))
      .key("llama.feed_forward_length", u32, little_number(16))
      .key("llama.attention.head_count", u32, little_number(2))
      .key("llama.attention.head_count_kv", u32, little_number(1))
      .key("llama.context_length", u32, little_number(64))
      .key("llama.attention.layer_norm_rms_epsilon", 6, little_endian(1e-5f));
  return file;
}

// The same with one value changed.
std::string llama_with(const std::string& key, std::uint32_t value) {
  GgufBytes file = llama();
  std::erase_if(file.metadata, [&](const std::string& entry) { return entry.find(key) != std::string::npos; });
  file.key("llama." + key, u32, little_number(value));
  file.tensor({.name = "token_embd.weight", .sizes = {8, 4}, .data = std::string(128, '\0')});
  file.tensor({.name = "blk.0.attn_q.weight", .sizes = {8, 8}, .data = std::string(256, '\0')});
  return file.bytes();
}

// CVE-2024-23605, TALOS-2024-1912: header.n_kv times the size of a key overflowed.
TEST(GgufAttack, CountsOfKeysThatOverflow) {
  for (const std::uint64_t count : {UINT64_MAX, std::uint64_t{1} << 63, UINT64_MAX / 48 + 2, std::uint64_t{1} << 40}) {
    GgufBytes file = llama();
    file.key_count = count;
    expect_gguf_refused(file.bytes(), "the metadata has a length of");
  }
}

// CVE-2024-21836, TALOS-2024-1916: the same for header.n_tensors.
TEST(GgufAttack, CountsOfTensorsThatOverflow) {
  for (const std::uint64_t count : {UINT64_MAX, std::uint64_t{1} << 63, UINT64_MAX / 96 + 2, std::uint64_t{1} << 40}) {
    GgufBytes file = llama();
    file.tensor_count = count;
    expect_gguf_refused(file.bytes(), "the list of tensors has a length of");
  }
}

// CVE-2024-23496, TALOS-2024-1913: the length of a string plus one overflowed.
TEST(GgufAttack, LengthsOfStringsThatOverflow) {
  for (const std::uint64_t length : {UINT64_MAX, UINT64_MAX - 1, std::uint64_t{1} << 63, std::uint64_t{1} << 32}) {
    GgufBytes value = llama();
    value.key("general.name", text_type, little_endian(length) + "x");
    expect_gguf_refused(value.bytes(), "has a length of");
    GgufBytes key;
    key.metadata.push_back(little_endian(length) + "general.name" + little_number(text_type));
    expect_gguf_refused(key.bytes(), "has a length of");
  }
}

// CVE-2024-21825, TALOS-2024-1914: the size of an array, and of an array of strings, overflowed.
TEST(GgufAttack, LengthsOfArraysThatOverflow) {
  for (const std::uint32_t type : {0u, u32, text_type, u64, 12u}) {
    for (const std::uint64_t count : {UINT64_MAX, UINT64_MAX / 8 + 2, std::uint64_t{1} << 61, std::uint64_t{1} << 33}) {
      GgufBytes file = llama();
      file.array("tokenizer.ggml.tokens", type, count, "12345678");
      expect_gguf_refused(file.bytes(), "has a length of");
    }
  }
}

// CVE-2024-21802, TALOS-2024-1915: more dimensions than the four that there is room for.
TEST(GgufAttack, MoreDimensionsThanFour) {
  for (const std::uint32_t dimensions : {5u, 64u, 1u << 31, UINT32_MAX}) {
    GgufBytes file = llama();
    file.tensor({.name = "token_embd.weight", .sizes = {1, 1, 1, 1, 1}, .data = "1234", .dimensions = dimensions});
    expect_gguf_refused(file.bytes(), "dimensions, expected at most 4");
  }
}

// CVE-2025-53630: the sizes of tensors, and their sum with padding, overflowed.
TEST(GgufAttack, SizesOfTensorsThatOverflow) {
  using Sizes = std::vector<std::uint64_t>;
  for (const Sizes& sizes :
       {Sizes{UINT64_MAX}, Sizes{1ull << 32, 1ull << 32}, Sizes{1ull << 62, 4},
        Sizes{1ull << 16, 1ull << 16, 1ull << 16, 1ull << 16}, Sizes{UINT64_MAX / 4 + 1}, Sizes{(1ull << 62) - 8}}) {
    GgufBytes file = llama();
    file.tensor({.name = "token_embd.weight", .sizes = sizes, .data = ""});
    expect_gguf_refused(file.bytes(), "tensor 'token_embd.weight'");
  }
}

TEST(GgufAttack, AlignmentsThatAreNoPowerOfTwo) {
  for (const std::uint32_t alignment : {0u, 3u, 33u, UINT32_MAX}) {
    GgufBytes file = llama();
    file.key("general.alignment", u32, little_number(alignment));
    expect_gguf_refused(file.bytes(), "expected a power of two");
  }
  // The padding of an alignment that is larger than the file.
  GgufBytes file = llama();
  file.key("general.alignment", u32, little_number(1u << 31));
  file.tensor({.name = "token_embd.weight"});
  expect_gguf_refused(file.bytes(), "");
}

// CVE-2024-32878: a value of a type that does not exist left a pointer unset, which was freed.
TEST(GgufAttack, TypesThatDoNotExist) {
  for (const std::uint32_t type : {13u, 255u, UINT32_MAX}) {
    expect_gguf_refused(GgufBytes().key("a", type, "12345678").bytes(), "expected 0 to 12");
    expect_gguf_refused(GgufBytes().array("a", type, 1, "12345678").bytes(), "expected 0 to 12");
    GgufBytes file = llama();
    file.tensor({.name = "token_embd.weight", .type = type + 100});
    expect_gguf_refused(file.bytes(), "is of type");
  }
  GgufBytes nested;
  std::string arrays;
  for (int i = 0; i < 100'000; ++i) arrays += little_number(array_type) + little_endian(std::uint64_t{1});
  expect_gguf_refused(nested.key("a", array_type, arrays).bytes(), "an array of arrays");
}

// CVE-2026-7482, "Bleeding Llama", ollama: a tensor that is longer than the file leaked memory when it was quantized.
// CVE-2024-12055, ollama: the same crashed it.
TEST(GgufAttack, TensorsPastTheEndOfTheFile) {
  GgufBytes file = llama();
  file.tensor({.name = "token_embd.weight", .sizes = {8, 1 << 20}, .data = std::string(64, '\0')});
  expect_gguf_refused(file.bytes(), "bytes from byte 0 of the data on");
  for (const std::uint64_t offset : {UINT64_MAX, UINT64_MAX - 31, std::uint64_t{1} << 63, std::uint64_t{1} << 20}) {
    GgufBytes moved = llama();
    moved.tensor({.name = "token_embd.weight", .sizes = {8, 4}, .data = std::string(128, '\0'), .offset = offset});
    expect_gguf_refused(moved.bytes(), "of the data");
  }
}

// CVE-2024-39720, ollama: a file of four bytes, the magic alone.
TEST(GgufAttack, TheMagicAlone) {
  const std::string whole = llama_with("block_count", 2);
  for (std::size_t size = 4; size < 40; ++size) expect_gguf_refused(whole.substr(0, size), "");
}

// CVE-2025-0312, ollama: metadata that is missing or of another type was a null pointer.
TEST(GgufAttack, MetadataThatIsMissingOrOfAnotherType) {
  const GgufBytes whole = llama();
  for (std::size_t i = 0; i < whole.metadata.size(); ++i) {
    GgufBytes missing = whole;
    missing.metadata.erase(missing.metadata.begin() + static_cast<std::ptrdiff_t>(i));
    missing.tensor({.name = "token_embd.weight", .sizes = {8, 4}, .data = std::string(128, '\0')});
    expect_gguf_refused(missing.bytes(), "");
  }
  for (const char* const key : {"general.architecture", "tokenizer.ggml.model", "tokenizer.ggml.tokens",
                                "tokenizer.ggml.merges", "tokenizer.chat_template", "llama.block_count"}) {
    for (const std::uint32_t type : {0u, 7u, 12u}) {
      GgufBytes other;
      other.key(key, type, "\x01\x00\x00\x00\x00\x00\x00\x00"s.substr(0, type == 12 ? 8 : 1));
      expect_gguf_refused(other.bytes(), "");
      expect_gguf_refused(GgufBytes().array(key, type, 0, "").bytes(), "");
    }
  }
}

// CVE-2025-0317, CVE-2024-8063, ollama: divisions by counts of the file that are zero.
TEST(GgufAttack, CountsOfZero) {
  for (const char* const key : {"block_count", "embedding_length", "feed_forward_length", "attention.head_count",
                                "attention.head_count_kv", "context_length", "rope.dimension_count"}) {
    expect_gguf_refused(llama_with(key, 0), "");
  }
}

// CVE-2025-0315, ollama: counts of the file decided how much memory was taken.
TEST(GgufAttack, CountsThatAreHuge) {
  for (const char* const key :
       {"block_count", "embedding_length", "feed_forward_length", "attention.head_count", "attention.head_count_kv",
        "context_length", "rope.dimension_count", "vocab_size", "expert_count", "expert_used_count"}) {
    for (const std::uint32_t value : {UINT32_MAX, 1u << 31, 1u << 24}) expect_gguf_refused(llama_with(key, value), "");
  }
}

// CVE-2025-49847, CVE-2025-52566, llama.cpp: tokens whose length did not fit in an int.
TEST(GgufAttack, VocabulariesThatAreNoVocabulary) {
  GgufBytes file = llama();
  const std::string longest(std::size_t{8} << 20, 'a');
  file.key("tokenizer.ggml.model", text_type, gguf_text("gpt2"))
      .key("tokenizer.ggml.pre", text_type, gguf_text("gpt-2"))
      .array("tokenizer.ggml.tokens", text_type, 2, gguf_text(longest) + gguf_text("b"))
      .array("tokenizer.ggml.token_type", 5, 1, little_number(1))
      .array("tokenizer.ggml.merges", text_type, 1, gguf_text("a"));
  const TemporaryFile path(file.bytes());
  expect_refused([&] { load_tokenizer(path.path()); }, "");
  for (const std::string& id : {little_number(2), little_number(UINT32_MAX), little_number(1u << 31)}) {
    GgufBytes ids;
    ids.key("tokenizer.ggml.model", text_type, gguf_text("gpt2"))
        .key("tokenizer.ggml.pre", text_type, gguf_text("gpt-2"))
        .array("tokenizer.ggml.tokens", text_type, 2, gguf_text("a") + gguf_text("b"))
        .array("tokenizer.ggml.merges", text_type, 0, "")
        .key("tokenizer.ggml.eos_token_id", u32, id);
    const TemporaryFile with_ids(ids.bytes());
    expect_refused([&] { load_tokenizer(with_ids.path()); }, "");
  }
}

}  // namespace
}  // namespace minimind
