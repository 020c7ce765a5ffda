#pragma once

#include <string>

#include "weights/tensor/stored_tensor.h"

namespace minimind {

// The SHA-256 of weights, as 64 hexadecimal digits. It is of the values, not of the file that stores them: for every
// tensor, in the bytewise order of the names, the line "<name> [<size>, <size>]\n" and then all its values as
// little-endian binary32, row by row. So the same weights have the same hash in every file format, and in every type
// that holds them exactly; a block type counts with the values it represents, and a NaN with the bits it converts to.
//
// Requires f32, f16, bf16 or block types, as Checkpoint::tensors are; throws Error for any other. Mapped pages that
// were read are given back. In Python, for a v2 or v3 .pth whose lm_head is the embedding and so no tensor of its own
// (v1's tensors have Hugging Face's names here):
//
//   state = torch.load(path, map_location="cpu")
//   digest = hashlib.sha256()
//   for name in sorted(state.keys() - {"lm_head.weight"}):
//       digest.update(f"{name} {list(state[name].shape)}\n".encode() + state[name].float().numpy().tobytes())
//   print(digest.hexdigest())
std::string weights_sha256(const StoredTensors& tensors);

}  // namespace minimind
