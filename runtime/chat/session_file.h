#pragma once

#include <string>
#include <string_view>

#include "runtime/chat/conversation.h"
#include "runtime/engine/context.h"
#include "runtime/engine/pack.h"
#include "weights/checkpoint/checkpoint.h"
#include "weights/model/config.h"

namespace minimind {

// The identity of the model that computed a session's keys and values. Other models cannot use them.
struct ModelIdentity {
  std::string name;    // the path, for messages only
  std::string sha256;  // 64 hexadecimal digits
  Config config;
};

// Identifies a model. The hash is of the weights (weights_sha256), of the config's fields that change the computation,
// and of the type in which the matrices are kept. So a model has one hash in every file format, and another with a
// LoRA, another type or another RoPE scaling. Reads all weights, which takes as long as the SHA-256 of 4 bytes per
// weight.
ModelIdentity identify(const Checkpoint& checkpoint, WeightType type, Compute compute = Compute::f32);

// A conversation and its context. In the file, little-endian:
//   "minimind session", 16 bytes
//   u32 version, 3
//   u64 size of the header, and the header: JSON with the model's name and hash, type and shape of the cache, and the
//     conversation
//   u64 count of tokens, and the tokens, i32 each: of the last prompt and its answer
//   the keys and values of the first tokens, as many as the context holds: filled_cells()
//   SHA-256 of all the above, 32 bytes
// The file appears under its name only when it is complete. Throws Error as OutputFile does. Without the keys and
// values, the file is small, and the prompt is computed again when the conversation continues.
enum class SessionCache { kept, omitted };
void save_session(const std::string& path, const ModelIdentity& model, const ConversationState& conversation,
                  Context& context, SessionCache cache = SessionCache::kept);

// Returns true if a file's content starts as that of a session.
bool is_session(std::string_view file);

// Reads a session file: fills the context, which must be for this model, and returns the conversation for
// Conversation::restore(). Nothing has to be computed again. Another tokenizer or template is allowed: it only changes
// the next prompt. Throws Error, and leaves the context unchanged, for a file that is not a session, is corrupt or is
// truncated. Also throws Error for a session of another model, naming both, for another type of cache, and if the
// context is too small, naming the required size.
ConversationState load_session(const std::string& path, const ModelIdentity& model, Context& context);

}  // namespace minimind
