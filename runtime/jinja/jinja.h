#pragma once

#include <ctime>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/jinja/value.h"

namespace minimind {

namespace jinja {
struct Template;
}

// A template in the language of Jinja2 as transformers sets it up for chat templates (trim_blocks, lstrip_blocks, loop
// controls, generation blocks, an immutable sandbox, its own tojson, raise_exception and strftime_now). What is
// rendered is what Jinja2 3.1 renders; what Jinja2 refuses is refused, and what is not supported here is refused too,
// never guessed. Constant once made: any number of threads may render it.
//
// Not supported: block, extends, include, import, autoescape, recursive loops, cycler, joiner, lipsum, the
// filters that make HTML or wrap text, some methods of strings (encode, translate, casefold ...), attributes of Python,
// integers of more than 64 bits.
class JinjaTemplate {
 public:
  // `name` stands for the template in messages. Throws Error, with line and column, for what cannot be parsed; a
  // template may have 1 MiB.
  JinjaTemplate(std::string_view source, std::string name);
  ~JinjaTemplate();
  JinjaTemplate(JinjaTemplate&&) noexcept;
  JinjaTemplate& operator=(JinjaTemplate&&) noexcept;

  // The text, given these variables; `now` is what strftime_now tells, in local time. Throws Error, with line and
  // column, for everything that Jinja2 throws for (raise_exception among it) and for what exceeds `limits`.
  std::string render(const jinja::Dict& variables, std::time_t now, const jinja::Limits& limits = {}) const;

 private:
  std::string name_;
  std::string source_;
  std::unique_ptr<const jinja::Template> parsed_;
};

}  // namespace minimind
