#pragma once

#include <string_view>

namespace minimind::pickle {

// What becomes of an allow-listed name when the pickle calls it.
enum class Role {
  mention,       // it is never called: a dtype, a storage class
  call,          // recorded as a Call
  ordered_dict,  // becomes a Dict
  size,          // torch.Size: becomes its Tuple
};

struct AllowedGlobal {
  std::string_view name;
  Role role;
};

// The entry for `name`, module and name joined by a dot, or null when it is not allow-listed. The list holds what
// torch.save writes for tensors and what a training run saves beside them; calling any of it only builds a value.
const AllowedGlobal* find_allowed_global(std::string_view name);

}  // namespace minimind::pickle
