#include "tools/chat/setup.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <system_error>
#include <utility>

#include "runtime/chat/message_json.h"
#include "tools/chat/actions.h"
#include "tools/terminal/note.h"
#include "weights/base/error.h"
#include "weights/io/output_file.h"
#include "weights/io/text_file.h"

namespace minimind {
namespace {

const ChatOptions& checked(const ChatOptions& options) {
  options.check();
  return options;
}

// Reports a file that cannot be written before the conversation starts, not at its end.
std::optional<FileLock> locked_for_writing(const std::string& path) {
  if (path.empty()) return std::nullopt;
  { const OutputFile probe(path); }
  return std::optional<FileLock>(std::in_place, path);
}

}  // namespace

ChatSetup::ChatSetup(const ChatOptions& options)
    : options_(checked(options)),
      session_lock_(locked_for_writing(options.session)),
      save_lock_(locked_for_writing(options.save)),
      parameters_(options.sampling.parameters()),
      grammar_(options.sampling.grammar(options.run.quiet)),
      model_path_(model_path(options.checkpoint.model)),
      files_(written_files(model_path_)),
      llm_(load_llm(options, {.chat_template = options.chat_template},
                    [&](const Checkpoint& checkpoint) { note_checkpoint(checkpoint); })),
      context_(llm_.context(llm_.positions)),
      speculation_(options.speculation, llm_, context_.capacity(), options.run),
      forward_(llm_.forward(std::max(context_.capacity(), speculation_.draft_tokens() + 1), context_.capacity())),
      conversation_(forward_, context_, *llm_.tokenizer, *llm_.chat_template, conversation_options()) {
  begin();
}

ConversationOptions ChatSetup::conversation_options() const {
  ConversationOptions options;
  options.generate = llm_.generate_options(parameters_, true, grammar_);
  speculation_.speed_up(options.generate);
  options.history = options_.history;
  options.no_shift = options_.no_shift;
  options.plain_answers = !options_.sampling.constraint.json_schema_file.empty();
  options.plain_content = options_.plain_content;
  return options;
}

void ChatSetup::print_assumptions() const {
  if (!parameters_.ignore_eos) print_assumed_end(llm_);
  if (!options_.sampling.given.seed && parameters_.sampling.temperature > 0) note("seed {}", *parameters_.seed);
}

// Loads the state of a file first; options then replace parts of it.
void ChatSetup::begin() {
  if (!options_.run.quiet) print_assumptions();
  std::error_code unknown;  // which reading then tells
  if (identity_ && std::filesystem::status(options_.session, unknown).type() != std::filesystem::file_type::not_found) {
    conversation_.restore(load_session(options_.session, *identity_, context_));
    kept_answers_ = conversation_.state().answers;
  }
  if (!options_.load.empty()) conversation_.restore(read_conversation(options_.load));
  if (!options_.tools.empty()) conversation_.set_tools(parse_tools(read_text_or_pipe(options_.tools), options_.tools));
  if (options_.system) conversation_.set_system(options_.system);
  if (options_.think) conversation_.set_think(options_.think);
  if (options_.run.quiet) return;
  for (const std::string_view name : conversation_.unheard()) {
    note("the chat template ignores {}: the model never sees this", translated(name));
  }
  if (conversation_.turns() > 0) {
    note("continuing {}: {}, {} in the context", options_.load.empty() ? options_.session : options_.load,
         counted(conversation_.turns(), "{} turn", "{} turns"), counted(context_.size(), "{} token", "{} tokens"));
  }
}

void ChatSetup::keep_turn(const ChatNotices& notices) {
  const std::uint64_t answers = conversation_.state().answers;
  if (!identity_ || std::exchange(kept_answers_, answers) == answers) return;
  try {
    save_session(options_.session, *identity_, conversation_.state(), context_, SessionCache::omitted);
    if (std::exchange(unsaved_, false)) notices.say("{}: the conversation is saved again", options_.session);
  } catch (const Error& error) {
    if (!std::exchange(unsaved_, true)) {
      notices.complain(localized("{}; the conversation continues, and the next answer is saved with it", error.what()));
    }
  }
}

void ChatSetup::note_checkpoint(const Checkpoint& checkpoint) {
  for (const auto& [name, tensor] : checkpoint.tensors) model_files_.insert(tensor.file);
  for (const LoraFile& lora : options_.checkpoint.open_options().loras) model_files_.insert(lora.path);
  if (!options_.save.empty()) check_not_of_model(options_.save, model_files_);
  if (options_.session.empty()) return;
  identity_ = identify(checkpoint, options_.run.weight_type(), options_.run.compute);
}

void ChatSetup::look_at_file(const ChatNotices& notices) {
  std::vector<WrittenFile> files = written_files(model_path_);
  if (files.empty() || files == files_) return;
  files_ = std::move(files);
  notices.say("{} was written anew; /reload loads it", model_path_);
}

void ChatSetup::reload(const ChatNotices& notices) {
  std::vector<WrittenFile> files = written_files(model_path_);
  Model model = load_new_weights(llm_, model_path_, options_.checkpoint, options_.run,
                                 [&](const Checkpoint& checkpoint) { note_checkpoint(checkpoint); });
  context_.rewind(0);
  *llm_.model = std::move(model);
  files_ = std::move(files);
  notices.say("loaded {} again; the conversation continues with its weights", model_path_);
}

void ChatSetup::keep_session() {
  try {
    save_session(options_.session, *identity_, conversation_.state(), context_);
  } catch (const Error& error) {
    try {
      save_session(options_.session, *identity_, conversation_.state(), context_, SessionCache::omitted);
    } catch (const Error&) {
      throw error;
    }
    note("{}; saved without the KV cache, which is computed again when you continue", error.what());
  }
}

void ChatSetup::keep() {
  std::exception_ptr failure;
  try {
    if (identity_) keep_session();
  } catch (const Error&) {
    failure = std::current_exception();
  }
  if (!options_.save.empty()) write_conversation(options_.save, conversation_.state());
  if (failure) std::rethrow_exception(failure);
}

}  // namespace minimind
