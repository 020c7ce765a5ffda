#pragma once

#include <string>
#include <string_view>

#include "runtime/chat/conversation.h"
#include "runtime/engine/context.h"
#include "runtime/engine/pack.h"
#include "weights/checkpoint/checkpoint.h"
#include "weights/model/config.h"

namespace minimind {

// What computed the keys and values of a session: they are of no use to anything else.
struct ModelIdentity {
  std::string name;    // the path, for messages only
  std::string sha256;  // 64 hexadecimal digits
  Config config;
};

// The hash is of the weights (weights_sha256), of what of the config changes what is computed from them, and of the
// type that the matrices are to be held as: so a model is itself in any file format, and another one with --lora,
// --type or
// --rope-scaling. Reads all weights, which takes as long as SHA-256 of 4 bytes for each.
ModelIdentity identify(const Checkpoint& checkpoint, WeightType type);

// A conversation and its context. In the file, little-endian:
//   "minimind session", 16 bytes
//   u32 version, 2
//   u64 size of the header, and the header: JSON with the model's name and hash, type and shape of the cache, and the
//     conversation
//   u64 count of tokens, and the tokens, i32 each: of the last prompt and its answer
//   the keys and values of the first tokens, as many as the context holds: KvCache::filled_parts
//   SHA-256 of all the above, 32 bytes
// The file appears under its name only when it is whole. Throws Error as OutputFile does.
void save_session(const std::string& path, const ModelIdentity& model, const ConversationState& conversation,
                  Context& context);

// Whether a file's content begins as that of a session does.
bool is_session(std::string_view file);

// Reads it again: fills the context, which is for the same model, and returns the conversation, for
// Conversation::restore(). Nothing is then computed again. Which tokenizer and template there were does not matter:
// with others, the next prompt is just another one. Throws Error, and leaves the context as it is: for a file that is
// no session, corrupt or truncated; for a session of another model, naming both; for one of another type of cache; and
// where the context is too small, naming the --ctx-size that would do.
ConversationState load_session(const std::string& path, const ModelIdentity& model, Context& context);

}  // namespace minimind
