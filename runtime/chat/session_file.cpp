#include "runtime/chat/session_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/chat/chat_json.h"
#include "runtime/chat/conversation_prompt.h"
#include "runtime/chat/message_json.h"
#include "runtime/engine/filled_cells.h"
#include "runtime/text/utf8.h"
#include "weights/base/error.h"
#include "weights/base/text.h"
#include "weights/checkpoint/weights_hash.h"
#include "weights/io/byte_reader.h"
#include "weights/io/input_file.h"
#include "weights/io/output_file.h"
#include "weights/io/sha256.h"
#include "weights/model/config_json.h"

namespace minimind {
namespace {

constexpr std::string_view magic = "minimind session";
constexpr std::uint32_t version = 3;
constexpr std::size_t digest_size = 32;

std::string describe(const RopeScaling& scaling) {
  return fmt::format("{} {} {} {} {} {} {}", static_cast<int>(scaling.kind), static_cast<int>(scaling.ramp_end),
                     scaling.factor, scaling.original_max_position_embeddings, scaling.beta_fast, scaling.beta_slow,
                     scaling.attention_factor);
}

// Returns true for the hyper-parameters that never change the result: file formats may differ in them.
bool is_irrelevant(std::string_view name) {
  return name == "max_position_embeddings" || name == "tie_word_embeddings";
}

// The fields that may change the result.
std::string describe(const Config& config) {
  std::string text = fmt::format("{}\n{}\n{}\n", name_of(config.family), name_of(config.hidden_act),
                                 config.rope_scaling ? describe(*config.rope_scaling) : "none");
  for (const HyperParameter& parameter : hyper_parameters) {
    if (is_irrelevant(parameter.name) || (parameter.of_experts && config.num_experts == 0)) continue;
    std::visit([&](const auto& members) { text += fmt::format("{} {}\n", parameter.name, config.*members.config); },
               parameter.members);
  }
  return text;
}

std::string type_text(WeightType type) {
  return type ? std::string(name_of(*type)) : "as stored";
}

// Writes and hashes. A conversation is its owner's alone.
class SessionWriter {
 public:
  explicit SessionWriter(const std::string& path) : file_(path, {}, OutputFile::Readers::owner) {}

  void write(std::span<const std::byte> bytes) {
    hash_.update(bytes);
    file_.write(bytes);
  }
  void write_text(std::string_view text) { write(std::as_bytes(std::span(text))); }
  template <class Number>
  void write_number(Number number) {
    write(std::as_bytes(std::span(&number, 1)));
  }
  void commit() {
    file_.write(hash_.digest());
    file_.commit();
  }

 private:
  OutputFile file_;
  Sha256 hash_;
};

std::int64_t signed_count(std::uint64_t count) {
  return static_cast<std::int64_t>(count);
}

std::string header_text(const ModelIdentity& model, const ConversationState& conversation, Context& context,
                        std::size_t positions) {
  ChatJson header;
  header["model"] = to_utf8_lossy(model.name);
  header["sha256"] = model.sha256;
  header["cache_type"] = name_of(context.cache().type());
  header["layers"] = signed_count(model.config.num_hidden_layers);
  header["kv_heads"] = signed_count(model.config.num_key_value_heads);
  header["head_dim"] = signed_count(model.config.head_dim);
  header["positions"] = signed_count(positions);
  header["dropped_turns"] = signed_count(conversation.dropped_turns);
  header["answers"] = signed_count(conversation.answers);
  header["now"] = std::int64_t{conversation.now};
  header["think"] = conversation.think ? ChatJson(*conversation.think) : ChatJson(nullptr);
  header["tools"] = conversation.tools;
  header["messages"] = messages_json(conversation.messages, true);
  return json_line(header);
}

std::uint64_t count_in(const ChatFields& header, const char* key) {
  const ChatJson& count = header.required(key);
  if (!count.is_number_unsigned()) header.fail(key, "an integer that is not negative");
  return count.get<std::uint64_t>();
}

void check_model(const ChatFields& header, const std::string& path, const ModelIdentity& model, Context& context) {
  const std::string sha256 = header.required_text("sha256"), name = header.required_text("model");
  if (sha256 != model.sha256) {
    throw Error(
        fmt::format("{}: is a session with {} (hash {}), not with {} (hash {}); use that model with its LoRA, type "
                    "and RoPE scaling, or another session file",
                    path, quote(name), quote(sha256.substr(0, 12)), quote(model.name), model.sha256.substr(0, 12)),
        Setting::identity);
  }
  const std::string type = header.required_text("cache_type");
  if (type != name_of(context.cache().type())) {
    throw Error(fmt::format("{}: its keys and values are {}, expected {} as in this context; use a KV cache of type {}",
                            path, quote(type), name_of(context.cache().type()), quote(type)),
                Setting::kv_type);
  }
  const Config& config = model.config;
  const std::array<std::pair<const char*, std::size_t>, 3> shape = {
      {{"layers", config.num_hidden_layers}, {"kv_heads", config.num_key_value_heads}, {"head_dim", config.head_dim}}};
  for (const auto& [key, wanted] : shape) {
    if (count_in(header, key) != wanted) header.fail(key, fmt::format("the model's {}", wanted));
  }
}

ConversationState read_conversation(const ChatFields& header, const std::string& path) {
  ConversationState state;
  state.messages = read_messages(header.required("messages"), true, path);
  state.tools = header.required_text("tools");
  if (!state.tools.empty()) state.tools = parse_tools(state.tools, path + ": tools");
  state.think = header.flag("think");
  state.dropped_turns = count_in(header, "dropped_turns");
  const std::size_t turns = turn_starts(state.messages).size();
  if (state.dropped_turns > 0 && state.dropped_turns >= turns) {
    header.fail("dropped_turns", fmt::format("fewer than the {} turns of its messages", turns));
  }
  state.answers = count_in(header, "answers");
  state.now = static_cast<std::time_t>(count_in(header, "now"));
  return state;
}

std::vector<std::int32_t> read_tokens(ByteReader& reader, std::size_t vocab_size, const std::string& path) {
  const auto count = reader.read<std::uint64_t>();
  if (count > reader.remaining() / sizeof(std::int32_t)) {
    reader.fail(fmt::format("{} tokens are announced, expected no more than the file has; the file is corrupt", count));
  }
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(count));
  reader.read_into(std::as_writable_bytes(std::span(tokens)));
  try {
    check_tokens(tokens, vocab_size);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", path, error.what()));
  }
  return tokens;
}

// A session's cache fills the context at most; its text takes far less than the rest.
void check_size(const InputFile& file, const ModelIdentity& model, const Context& context) {
  constexpr std::size_t most_text = std::size_t{64} << 20;
  const std::size_t of_cache = context.capacity() * KvCache::bytes_per_position(model.config, context.cache().type());
  if (file.size() <= most_text + of_cache) return;
  throw Error(fmt::format("{}: is {} bytes long, expected at most {} for a context of {}; use a longer context",
                          file.path(), file.size(), most_text + of_cache, context.capacity()),
              Setting::context);
}

void check_digest(const InputFile& file) {
  constexpr std::size_t piece = std::size_t{1} << 16;
  ByteReader reader(file, {0, file.size()}, file.path());
  Sha256 hash;
  while (reader.remaining() > digest_size) hash.update(reader.take(std::min(piece, reader.remaining() - digest_size)));
  if (std::ranges::equal(hash.digest(), reader.take(digest_size))) return;
  throw Error(
      fmt::format("{}: is corrupt or truncated: its checksum does not match its content; start a new session under "
                  "another name, or remove this file",
                  file.path()));
}

// Reads the cache's part of the file directly into the cache.
void fill(Context& context, std::span<const std::int32_t> tokens, ByteReader& reader) {
  const std::size_t given = reader.remaining();
  std::size_t expected = 0;
  const auto parts = filled_cells(context.cache(), tokens.size());
  for (const auto part : parts) expected += part.size();
  if (expected != given) {
    reader.fail(fmt::format("it has {} bytes of keys and values, expected {}", given, expected));
  }
  context.rewind(0);
  context.append(tokens);
  try {
    for (const auto part : parts) reader.read_into(part);
  } catch (const Error&) {
    context.rewind(0);
    throw;
  }
}

}  // namespace

ModelIdentity identify(const Checkpoint& checkpoint, WeightType type, Compute compute) {
  const std::string text = weights_sha256(checkpoint.tensors) + "\n" + describe(checkpoint.config) + type_text(type) +
                           (compute == Compute::bf16 ? "\ncompute bf16\n" : "\n");
  Sha256 hash;
  hash.update(std::as_bytes(std::span(text)));
  return {.name = checkpoint.path, .sha256 = hash.hex_digest(), .config = checkpoint.config};
}

bool is_session(std::string_view file) {
  return file.starts_with(magic);
}

void save_session(const std::string& path, const ModelIdentity& model, const ConversationState& conversation,
                  Context& context, SessionCache cache) {
  // After an interrupt or an error, the context's tokens may not be a prefix of the conversation's tokens.
  const auto held = context.tokens();
  std::span<const std::int32_t> tokens = conversation.tokens;
  if (tokens.size() < held.size() || !std::ranges::equal(held, tokens.first(held.size()))) tokens = held;

  if (conversation.messages.size() > max_messages) {
    throw Error(fmt::format("{}: the conversation has {} messages, expected at most {}", path,
                            conversation.messages.size(), max_messages));
  }
  SessionWriter writer(path);
  writer.write_text(magic);
  writer.write_number(version);
  const std::size_t positions = cache == SessionCache::kept ? context.size() : 0;
  const std::string header = header_text(model, conversation, context, positions);
  if (header.size() > max_chat_json_size) {
    throw Error(fmt::format("{}: the text of the conversation has {} bytes, expected at most {}", path, header.size(),
                            max_chat_json_size));
  }
  writer.write_number(std::uint64_t{header.size()});
  writer.write_text(header);
  writer.write_number(std::uint64_t{tokens.size()});
  writer.write(std::as_bytes(tokens));
  for (const auto part : filled_cells(context.cache(), positions)) writer.write(part);
  writer.commit();
}

ConversationState load_session(const std::string& path, const ModelIdentity& model, Context& context) {
  const auto file = open_input(path);
  ByteReader reader(*file, {0, file->size() - std::min(file->size(), digest_size)}, path);
  if (reader.remaining() < magic.size() || reader.take_text(magic.size()) != magic) {
    throw Error(fmt::format("{}: is not a session of minimind, expected \"{}\" at its start", path, magic));
  }
  if (const auto found = reader.read<std::uint32_t>(); found != version) {
    reader.fail(fmt::format("is of version {}, expected {}", found, version));
  }
  check_size(*file, model, context);
  check_digest(*file);
  const auto header_size = reader.read<std::uint64_t>();
  if (header_size > max_chat_json_size) {
    reader.fail(fmt::format("its header has {} bytes, expected at most {}", header_size, max_chat_json_size));
  }
  const ChatJson header_json = parse_chat_json(reader.take_text(header_size), path);
  const ChatFields header(header_json, path + ": its header");
  check_model(header, path, model, context);
  ConversationState state = read_conversation(header, path);
  state.tokens = read_tokens(reader, model.config.vocab_size, path);
  const std::uint64_t positions = count_in(header, "positions");
  if (positions > state.tokens.size()) {
    reader.fail(fmt::format("{} positions are stated for {} tokens, expected no more than the tokens", positions,
                            state.tokens.size()));
  }
  if (positions > context.capacity()) {
    throw Error(fmt::format("{}: has {} positions, expected at most {}, the context; use a context of {} or more", path,
                            positions, context.capacity(), positions + 1),
                Setting::context);
  }
  fill(context, std::span(state.tokens).first(static_cast<std::size_t>(positions)), reader);
  return state;
}

}  // namespace minimind
