#include "runtime/text/normal_form.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "weights/base/error.h"

namespace minimind {

std::optional<NormalForm> normal_form_of(std::string_view name) {
  const auto* const found = std::find(normal_form_names.begin(), normal_form_names.end(), name);
  if (found == normal_form_names.end()) return std::nullopt;
  return static_cast<NormalForm>(found - normal_form_names.begin());
}

std::string normalized(std::string_view text, NormalForm form) {
  const bool composed = form == NormalForm::nfc || form == NormalForm::nfkc;
  const int options = UTF8PROC_STABLE | (composed ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
                      (form >= NormalForm::nfkc ? UTF8PROC_COMPAT : 0);
  utf8proc_uint8_t* bytes = nullptr;
  const auto size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &bytes, static_cast<utf8proc_option_t>(options));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(bytes, &std::free);
  if (size < 0) throw Error("texts cannot be brought into a normal form of Unicode here; use the whole program");
  return {reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size)};
}

}  // namespace minimind
