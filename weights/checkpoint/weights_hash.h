#pragma once

#include <string>

#include "weights/tensor/stored_tensor.h"

namespace minimind {

// Returns the SHA-256 of weights as 64 hexadecimal digits. It hashes values, not the file that stores them. Tensors
// follow in the bytewise order of their names. Each contributes the line "<name> [<size>, <size>]\n" and then all its
// values as little-endian binary32, row by row. So equal weights have equal hashes in every file format and in every
// type that represents them exactly. A block type counts with its decoded values, a NaN with the bits of its
// conversion.
//
// `tensors` must be f32, f16, bf16 or block types, as Checkpoint::tensors are; throws Error for any other type. The
// Python equivalent, for a v2 or v3 .pth whose lm_head is the embedding (v1's
// tensors have Hugging Face's names here):
//
//   state = torch.load(path, map_location="cpu")
//   digest = hashlib.sha256()
//   for name in sorted(state.keys() - {"lm_head.weight"}):
//       digest.update(f"{name} {list(state[name].shape)}\n".encode() + state[name].float().numpy().tobytes())
//   print(digest.hexdigest())
std::string weights_sha256(const StoredTensors& tensors);

}  // namespace minimind
