#include "runtime/jinja/jinja.h"

#include <fmt/core.h>

#include "runtime/jinja/interpreter.h"
#include "runtime/jinja/lexer.h"
#include "runtime/jinja/parser.h"
#include "runtime/text/code_points.h"
#include "runtime/text/utf8.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

constexpr std::size_t max_source = std::size_t{256} << 10;  // a parsed template takes up to 160 times its size

[[noreturn]] void fail(const std::string& name, std::string_view source, std::size_t offset, const char* what) {
  const TextPlace place = place_of(offset, source);
  throw Error(fmt::format("{}: line {}, column {}: {}", name, place.line, place.column, what));
}

}  // namespace

JinjaTemplate::JinjaTemplate(std::string_view source, std::string name) : name_(std::move(name)) {
  if (source.size() > max_source) {
    throw Error(fmt::format("{}: is {} bytes long, expected at most {}", name_, source.size(), max_source));
  }
  if (!is_utf8(source)) throw Error(fmt::format("{}: is not UTF-8", name_));
  source_ = jinja::normalized_source(source);
  try {
    parsed_ = std::make_unique<const jinja::Template>(jinja::parse(source_));
  } catch (const jinja::SyntaxError& error) {
    fail(name_, source_, error.offset, error.what());
  }
}

JinjaTemplate::~JinjaTemplate() = default;
JinjaTemplate::JinjaTemplate(JinjaTemplate&&) noexcept = default;
JinjaTemplate& JinjaTemplate::operator=(JinjaTemplate&&) noexcept = default;

MarkedText JinjaTemplate::render_marked(const jinja::Dict& variables, std::time_t now,
                                        const jinja::Limits& limits) const {
  jinja::Context context(limits, now);
  std::size_t offset = 0;
  try {
    return jinja::interpret(*parsed_, variables, context, offset);
  } catch (const jinja::Failure& failure) {
    fail(name_, source_, offset, failure.what());
  }
}

}  // namespace minimind
