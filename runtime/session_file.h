#pragma once

#include <string>

#include "runtime/context.h"
#include "runtime/conversation.h"
#include "runtime/packed_matrix.h"
#include "weights/checkpoint.h"

namespace minimind {

// What computed the keys and values of a session: they are of no use to anything else.
struct ModelIdentity {
  std::string name;    // the path, for messages only
  std::string sha256;  // 64 hexadecimal digits
};

// The hash is of the weights (weights_sha256), of what of the config changes what is computed from them, and of the
// type that the matrices are held as: so a model is itself in any file format, and another one with another --type or
// --rope-scaling. Reads all weights, which takes as long as SHA-256 of 4 bytes for each.
ModelIdentity identify(const Checkpoint& checkpoint, WeightType type);

// A conversation and its context. The file (little-endian):
//   "minimind session" (16 bytes), u32 version 1, u32 reserved 0
//   u64 size of the header, the header: JSON with the model's identity, the cache's type and shape, the conversation
//   tokens, i32 each
//   keys and values of the tokens in the context: [layer][kv_head] keys, then values, [position][head_dim]
//   SHA-256 of all the above, 32 bytes
// It appears under its name only when it is whole. Throws Error as OutputFile does.
void save_session(const std::string& path, const ModelIdentity& model, const ConversationState& conversation,
                  Context& context);

// Reads it again: fills the context, which must be for the same model, and returns the conversation, for
// Conversation::restore(). Nothing is then computed anew. Throws Error, with the context unchanged or empty: for a file
// that is damaged, cut off or no session, naming what is wrong; for a session of another model, naming both; for
// another type of cache; and where the context is too small, naming the --ctx-size that would do.
ConversationState load_session(const std::string& path, const ModelIdentity& model, Context& context);

}  // namespace minimind
