#include "weights/model/minimind_names.h"

#include "weights/base/text.h"
#include "weights/model/tensor_names.h"

namespace minimind {

std::string minimind_name(Family family, std::string_view canonical, bool gated) {
  std::string name(canonical);
  if (family != Family::v1 && family != Family::v2_early) return name;
  if (!gated) replace_all(name, ".up_proj.", ".w1.");
  for (auto part = v1_names.rbegin(); part != v1_names.rend(); ++part) replace_all(name, part->second, part->first);
  if (name.starts_with("model.")) name.erase(0, std::string_view("model.").size());
  return name;
}

}  // namespace minimind
