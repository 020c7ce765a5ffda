#pragma once

#include "runtime/jinja_context.h"

namespace minimind::jinja {

// `format % arguments`: %s, %r, %d, %i and %%.
Value formatted(Context& context, const Text& format, const Value& arguments);

// subject.format(arguments): {}, {0}, {name}, {{ and }}.
Value format_fields(Context& context, const Value& subject, const Arguments& arguments);

}  // namespace minimind::jinja
