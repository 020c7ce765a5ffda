#include "weights/base/fact.h"

#include <fmt/args.h>

namespace minimind {

std::string Fact::told(std::string_view (*translate)(std::string_view english)) const {
  fmt::dynamic_format_arg_store<fmt::format_context> arguments;
  for (const Value& value : values_) {
    if (const Fact* const fact = std::get_if<Fact>(&value.value)) {
      arguments.push_back(fact->told(translate));
    } else if (const std::string* const text = std::get_if<std::string>(&value.value)) {
      arguments.push_back(*text);
    } else {
      arguments.push_back(std::get<std::size_t>(value.value));
    }
  }
  const std::string_view sentence = translate(sentence_);
  return fmt::vformat({sentence.data(), sentence.size()}, arguments);
}

}  // namespace minimind
