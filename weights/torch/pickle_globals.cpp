#include "weights/torch/pickle_globals.h"

#include <algorithm>
#include <iterator>

namespace minimind::pickle {
namespace {

constexpr AllowedGlobal allowed[] = {
    {"collections.OrderedDict", Role::ordered_dict},
    {"torch._utils._rebuild_tensor_v2", Role::call},
    {"torch._utils._rebuild_tensor", Role::call},
    {"torch._utils._rebuild_parameter", Role::call},
    {"torch._utils._rebuild_parameter_with_state", Role::call},
    {"torch.FloatStorage", Role::mention},
    {"torch.HalfStorage", Role::mention},
    {"torch.BFloat16Storage", Role::mention},
    {"torch.DoubleStorage", Role::mention},
    {"torch.LongStorage", Role::mention},
    {"torch.IntStorage", Role::mention},
    {"torch.ShortStorage", Role::mention},
    {"torch.CharStorage", Role::mention},
    {"torch.ByteStorage", Role::mention},
    {"torch.BoolStorage", Role::mention},
    {"torch.storage.UntypedStorage", Role::mention},
    {"torch.storage.TypedStorage", Role::mention},
    {"torch.Size", Role::size},
    {"torch.device", Role::call},
    {"torch.float32", Role::mention},
    {"torch.float16", Role::mention},
    {"torch.bfloat16", Role::mention},
    {"torch.float64", Role::mention},
    {"torch.int64", Role::mention},
    {"torch.int32", Role::mention},
    {"torch.int16", Role::mention},
    {"torch.int8", Role::mention},
    {"torch.uint8", Role::mention},
    {"torch.bool", Role::mention},
    // Beside the weights: options, random states, what Python writes for values that have no opcode in protocol 2.
    {"argparse.Namespace", Role::call},
    {"collections.Counter", Role::call},
    {"_codecs.encode", Role::call},
    {"builtins.bytes", Role::call},
    {"builtins.bytearray", Role::call},
    {"builtins.complex", Role::call},
    {"builtins.set", Role::call},
    {"builtins.frozenset", Role::call},
    {"numpy.dtype", Role::call},
    {"numpy.ndarray", Role::mention},
    {"numpy.core.multiarray.scalar", Role::call},
    {"numpy.core.multiarray._reconstruct", Role::call},
    {"numpy._core.multiarray.scalar", Role::call},
    {"numpy._core.multiarray._reconstruct", Role::call},
};

}  // namespace

const AllowedGlobal* find_allowed_global(std::string_view name) {
  const auto found = std::find_if(std::begin(allowed), std::end(allowed),
                                  [&](const AllowedGlobal& entry) { return entry.name == name; });
  return found == std::end(allowed) ? nullptr : found;
}

}  // namespace minimind::pickle
