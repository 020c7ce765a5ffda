#pragma once

#include "runtime/jinja/context.h"

namespace minimind::jinja {

// `format % arguments`, Python's but for %c, %a and a width or precision of *.
Value formatted(Context& context, const Text& format, const Value& arguments);

// subject.format(arguments), Python's but for attributes, items and fields within fields.
Value format_fields(Context& context, const Value& subject, const Arguments& arguments);

}  // namespace minimind::jinja
