#include "runtime/chat/session_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "tests/support/little_endian.h"
#include "tests/support/small_chat.h"
#include "tests/support/temporary_folder.h"
#include "weights/base/error.h"
#include "weights/io/sha256.h"

namespace minimind {
namespace {

ConversationOptions options(std::size_t max_tokens = 20) {
  ConversationOptions options;
  options.generate.max_tokens = max_tokens;
  options.generate.sampling.temperature = 2;
  return options;
}

class SessionFile : public testing::Test {
 protected:
  SessionFile() : chat_(Tokenizer(chat_tokenizer_data()), ChatTemplate::of_family(Family::v3, {}), 1024, options()) {
    chat_.conversation.set_system("be the user");
    chat_.ask("你好");
    chat_.ask("again");
    save_session(path_, identity_of(chat_), chat_.conversation.state(), chat_.context);
    bytes_ = read_whole_file(path_);
  }

  static ModelIdentity identity_of(const SmallChat& chat) { return identify(chat.checkpoint, std::nullopt); }

  // What loading says of a file with these bytes; the context has to stay as it was.
  std::string error_of(const std::string& bytes) {
    SmallChat chat = fresh();
    return error_of(bytes, chat);
  }

  std::string error_of(const std::string& bytes, SmallChat& chat) {
    const std::string path = folder_.write("changed.session", bytes);
    const std::vector<std::int32_t> before(chat.context.tokens().begin(), chat.context.tokens().end());
    try {
      load_session(path, identity_of(chat), chat.context);
    } catch (const Error& error) {
      EXPECT_TRUE(std::equal(before.begin(), before.end(), chat.context.tokens().begin(), chat.context.tokens().end()));
      EXPECT_TRUE(std::string(error.what()).starts_with(path)) << error.what();
      return error.what();
    }
    return "no error";
  }

  static SmallChat fresh(std::size_t capacity = 1024, unsigned seed = 1, KvType kv_type = KvType::f32) {
    return SmallChat(Tokenizer(chat_tokenizer_data()), ChatTemplate::of_family(Family::v3, {}), capacity, options(),
                     seed, kv_type);
  }

  // With the checksum that it should have.
  static std::string sealed(std::string bytes) {
    Sha256 hash;
    hash.update(std::as_bytes(std::span(bytes).first(bytes.size() - 32)));
    std::memcpy(bytes.data() + bytes.size() - 32, hash.digest().data(), 32);
    return bytes;
  }

  std::size_t header_size() const {
    std::uint64_t size = 0;
    std::memcpy(&size, bytes_.data() + 20, sizeof size);
    return static_cast<std::size_t>(size);
  }

  // With another text in the place of `found` in the header.
  std::string with_header(const std::string& found, const std::string& wanted) const {
    std::string header = bytes_.substr(28, header_size());
    const std::size_t at = header.find(found);
    if (at == std::string::npos) throw std::runtime_error("not in the header: " + found);
    header.replace(at, found.size(), wanted);
    return sealed(bytes_.substr(0, 20) + little_endian(std::uint64_t{header.size()}) + header +
                  bytes_.substr(28 + header_size()));
  }

  TemporaryFolder folder_;
  std::string path_ = folder_.path() + "/chat.session";
  SmallChat chat_;
  std::string bytes_;
};

TEST_F(SessionFile, ContinuesAsIfUninterrupted) {
  SmallChat later = fresh();
  later.conversation.restore(load_session(path_, identity_of(later), later.context));
  EXPECT_EQ(later.conversation.messages(), chat_.conversation.messages());
  const std::size_t held = later.context.size();
  EXPECT_EQ(held, chat_.context.size());
  const Answer there = later.ask("and again"), here = chat_.ask("and again");
  EXPECT_EQ(there.stats.reused_tokens, here.stats.reused_tokens);
  EXPECT_GT(there.stats.reused_tokens, 0u);
  EXPECT_EQ(there.message, here.message);
  EXPECT_EQ(later.conversation.state().tokens, chat_.conversation.state().tokens);
}

TEST_F(SessionFile, RequiresTheCacheTypeOfTheSession) {
  for (const KvType type : {KvType::f16, KvType::q8_0}) {
    SmallChat chat = fresh(1024, 1, type), later = fresh(1024, 1, type), exact = fresh();
    chat.ask("你好");
    save_session(path_, identity_of(chat), chat.conversation.state(), chat.context);
    later.conversation.restore(load_session(path_, identity_of(later), later.context));
    const Answer there = later.ask("and again"), here = chat.ask("and again");
    EXPECT_EQ(there.stats.reused_tokens, here.stats.reused_tokens);
    EXPECT_GT(there.stats.reused_tokens, 0u);
    EXPECT_EQ(there.message, here.message);
    const std::string message = error_of(read_whole_file(path_), exact);
    EXPECT_NE(message.find("a KV cache of type '" + std::string(name_of(type))), std::string::npos) << message;
  }
}

TEST_F(SessionFile, KeepsEverythingOfTheConversation) {
  ConversationState state = chat_.conversation.state();
  state.think = true;
  state.tools = R"([{"name": "a", "parameters": {"type": "object"}}])";
  state.dropped_turns = 1;
  state.answers = 17;
  state.now = 1234567890;
  state.messages.back().reasoning = "嗯";
  state.messages.back().tool_calls = {{.id = "call_1", .name = "a", .arguments = R"({"b": 1.5})"}};
  state.messages.back().verbatim = "as it was \"written\"\n";
  state.messages.back().verbatim_plain.add(0, 5);
  state.messages.back().verbatim_plain.add(7, 19);
  state.messages.push_back({.role = Role::tool, .content = "c", .tool_call_id = "call_1", .name = "a"});
  save_session(path_, identity_of(chat_), state, chat_.context);
  SmallChat later = fresh();
  const ConversationState read = load_session(path_, identity_of(later), later.context);
  EXPECT_EQ(read.messages, state.messages);
  EXPECT_EQ(read.tools, state.tools);
  EXPECT_EQ(read.think, state.think);
  EXPECT_EQ(read.dropped_turns, state.dropped_turns);
  EXPECT_EQ(read.answers, state.answers);
  EXPECT_EQ(read.now, state.now);
  EXPECT_EQ(read.tokens, state.tokens);
}

TEST_F(SessionFile, OfAnEmptyConversation) {
  SmallChat empty = fresh(), later = fresh();
  save_session(path_, identity_of(empty), empty.conversation.state(), empty.context);
  later.conversation.restore(load_session(path_, identity_of(later), later.context));
  EXPECT_EQ(later.context.size(), 0u);
  EXPECT_FALSE(later.ask("hi").withdrawn);
}

TEST_F(SessionFile, AfterAnInterruptHasTheTokensOfTheContext) {
  const std::string long_message(500, 'x');
  AnswerListener listener;
  chat_.conversation.undo();
  chat_.interrupted = true;
  EXPECT_TRUE(chat_.ask(long_message).withdrawn);
  save_session(path_, identity_of(chat_), chat_.conversation.state(), chat_.context);
  SmallChat later = fresh();
  later.conversation.restore(load_session(path_, identity_of(later), later.context));
  chat_.interrupted = false;
  EXPECT_EQ(later.ask("hi").message, chat_.ask("hi").message);
}

TEST_F(SessionFile, IsTheSameWhenItIsSavedAgain) {
  SmallChat later = fresh();
  later.conversation.restore(load_session(path_, identity_of(later), later.context));
  ModelIdentity identity = identity_of(later);
  identity.name = identity_of(chat_).name;
  save_session(folder_.path() + "/again", identity, later.conversation.state(), later.context);
  EXPECT_EQ(read_whole_file(folder_.path() + "/again"), bytes_);
}

TEST_F(SessionFile, OfAnotherModelIsRejectedWithBothNames) {
  SmallChat other = fresh(1024, 2);
  const std::string message = error_of(bytes_, other);
  EXPECT_NE(message.find(chat_.checkpoint.path), std::string::npos) << message;
  EXPECT_NE(message.find(other.checkpoint.path), std::string::npos) << message;
}

TEST_F(SessionFile, TheIdentityIsOfAllThatChangesTheResult) {
  const std::string sha256 = identity_of(chat_).sha256;
  EXPECT_EQ(sha256.size(), 64u);
  Checkpoint changed = chat_.checkpoint;
  changed.path = "elsewhere";
  EXPECT_EQ(identify(changed, std::nullopt).sha256, sha256);
  EXPECT_NE(identify(changed, DType::q8_0).sha256, sha256);
  EXPECT_NE(identify(changed, std::nullopt, Compute::bf16).sha256, sha256);
  changed.config.rope_scaling = RopeScaling();
  EXPECT_NE(identify(changed, std::nullopt).sha256, sha256);
  changed.config = chat_.checkpoint.config;
  changed.config.rope_theta = 500;
  EXPECT_NE(identify(changed, std::nullopt).sha256, sha256);
}

TEST_F(SessionFile, NamesTheContextThatWouldFit) {
  SmallChat small = fresh(32);
  EXPECT_NE(error_of(bytes_, small).find("a context of " + std::to_string(chat_.context.size() + 1)),
            std::string::npos);
}

TEST_F(SessionFile, EveryTruncationIsAnError) {
  for (std::size_t size = 0; size < bytes_.size(); size += size < 2000 ? 7 : 997) {
    EXPECT_NE(error_of(bytes_.substr(0, size)), "no error") << size;
  }
  EXPECT_NE(error_of(bytes_ + "x").find("checksum"), std::string::npos);
}

TEST_F(SessionFile, ACorruptByteAnywhereIsAnError) {
  for (std::size_t at = 0; at < bytes_.size(); at += at < 2000 ? 13 : 1999) {
    std::string damaged = bytes_;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    EXPECT_NE(error_of(damaged), "no error") << at;
  }
}

TEST_F(SessionFile, OtherFilesAndVersionsAreReported) {
  EXPECT_NE(error_of("{\"messages\": []}").find("is not a session"), std::string::npos);
  std::string newer = bytes_;
  newer[16] = 4;
  EXPECT_NE(error_of(newer).find("version 4"), std::string::npos);
  EXPECT_THROW(load_session(folder_.path() + "/none", identity_of(chat_), chat_.context), Error);
}

TEST_F(SessionFile, AForgedHeaderIsAnError) {
  const auto said_of = [&](const std::string& found, const std::string& wanted) {
    return error_of(with_header(found, wanted));
  };
  const std::string positions = "\"positions\": " + std::to_string(chat_.context.size());
  EXPECT_NE(said_of(positions, "\"positions\": 0").find("bytes of keys and values"), std::string::npos);
  EXPECT_NE(said_of(positions, "\"positions\": 9223372036854775807").find("positions"), std::string::npos);
  EXPECT_NE(said_of(positions, "\"positions\": -1").find("not negative"), std::string::npos);
  EXPECT_NE(said_of(positions, "\"positions\": 1e3").find("not negative"), std::string::npos);
  EXPECT_NE(said_of("\"positions\"", "\"position\"").find("no \"positions\""), std::string::npos);
  EXPECT_NE(said_of("\"cache_type\": \"f32\"", "\"cache_type\": \"f\\u0000\"").find("f32"), std::string::npos);
  EXPECT_NE(said_of("\"head_dim\": 4", "\"head_dim\": 5").find("head_dim"), std::string::npos);
  EXPECT_NE(said_of("\"layers\": 2", "\"layers\": 4294967296").find("layers"), std::string::npos);
  EXPECT_NE(said_of("\"role\": \"user\"", "\"role\": \"tool\"").find("messages[1]"), std::string::npos);
  EXPECT_NE(said_of("\"tools\": \"\"", "\"tools\": \"[1]\"").find("tools"), std::string::npos);
  EXPECT_NE(said_of("\"now\"", "\"then\"").find("now"), std::string::npos);
  EXPECT_NE(said_of("\"dropped_turns\": 0", "\"dropped_turns\": 99").find("dropped_turns is 99, expected fewer"),
            std::string::npos);
  EXPECT_NE(said_of("{", "[").find("JSON"), std::string::npos);
}

TEST_F(SessionFile, ForgedSizesAreErrors) {
  const auto forged = [&](std::size_t at, std::uint64_t number) {
    std::string bytes = bytes_;
    bytes.replace(at, 8, little_endian(number));
    return error_of(sealed(bytes));
  };
  const std::size_t tokens = 28 + header_size();
  for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{1} << 32, ~std::uint64_t{0}}) {
    EXPECT_NE(forged(20, size), "no error") << size;
    EXPECT_NE(forged(tokens, size), "no error") << size;
  }
  EXPECT_NE(forged(tokens + 8, 0xFFFFFFFF).find("vocabulary"), std::string::npos);
}

TEST_F(SessionFile, IsReadableByItsOwnerAlone) {
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(path_).permissions(), perms::owner_read | perms::owner_write);
}

TEST_F(SessionFile, WhatCannotBeWrittenLeavesTheOldFile) {
  EXPECT_THROW(save_session(folder_.path() + "/none/chat.session", identity_of(chat_), chat_.conversation.state(),
                            chat_.context),
               Error);
  EXPECT_EQ(read_whole_file(path_), bytes_);
}

}  // namespace
}  // namespace minimind
