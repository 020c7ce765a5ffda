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
// rendered is what Jinja2 3.1 renders; what Jinja2 rejects is rejected, and what is not supported here is rejected too,
// never guessed. Constant once made: any number of threads may render it.
//
// Supported is what the chat templates of models in use need, and what a user would expect beside that. Refused by
// name, with line and column: block, extends, include, import, autoescape, with, print, recursive loops, loop.cycle,
// loop.changed, loop.depth; ** as an operator and before arguments; varargs and kwargs; cycler, joiner, lipsum; of
// filters those that compute, group, cut up or lay out (abs, round, sum, min, max, batch, slice, groupby, center,
// truncate, wordwrap ...), escape and others that make HTML, attr; the tests callable, escaped, filter, lower, sameas,
// test, upper; the methods of strings that lay out or classify (ljust, zfill, partition, isdigit ...) and index, count
// and copy of containers; formats but %s, %d, %f, {} and widths and precisions of numbers; tuples as keys; the case of
// characters such as U+00DF whose other case is not one character; numbers that are not decimal; attributes of Python;
// integers of more than 64 bits.
class JinjaTemplate {
 public:
  // `name` is that of the template in messages. Throws Error, with line and column, for what cannot be parsed; a
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
