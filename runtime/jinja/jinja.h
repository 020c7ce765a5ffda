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

// A template in the language of Jinja2 as transformers configures it for chat templates (trim_blocks, lstrip_blocks,
// loop controls, generation blocks, an immutable sandbox, its own tojson, raise_exception and strftime_now). The output
// is that of Jinja2 3.1. Templates that Jinja2 rejects, and unsupported features, are rejected, never guessed.
// Immutable: any number of threads may render it.
//
// Supported are the features that the chat templates of models in use need, and obvious others. Rejected, naming them,
// with line and column:
//   tags: block, extends, include, import, autoescape, with, print; recursive loops, loop.cycle, loop.changed,
//   loop.depth;
//   ** as an operator and before arguments; varargs and kwargs; cycler, joiner, lipsum;
//   filters that group, split or lay out (batch, slice, groupby, center, truncate, wordwrap ...), escape and others
//   that make HTML, attr; arguments of the other filters such as sort_keys; the tests callable, escaped, filter, lower,
//   sameas, test, upper; methods of strings that search, lay out or classify (find, count, splitlines, rsplit, zfill,
//   isdigit ...); index, count and copy of containers; replacing an empty string; formats except %s, %d, {}, {name} and
//   {:d}; printing ranges, namespaces and the views of mappings; integers of more than 64 bits; repeating lists; chains
//   of comparisons; ordering lists; several subscripts; steps of slices except 1 and -1; keys except strings and
//   integers; the case of characters such as U+00DF whose other case is not one character; attributes of Python.
class JinjaTemplate {
 public:
  // `name` is the template's name in messages. Throws Error, with line and column, for a template that cannot be parsed
  // or is over 256 KiB.
  JinjaTemplate(std::string_view source, std::string name);
  ~JinjaTemplate();
  JinjaTemplate(JinjaTemplate&&) noexcept;
  JinjaTemplate& operator=(JinjaTemplate&&) noexcept;

  // Returns the text for these variables; `now` is the time of strftime_now, in local time. Throws Error, with line and
  // column, for every exception of Jinja2 (raise_exception among them), and if `limits` are exceeded.
  std::string render(const jinja::Dict& variables, std::time_t now, const jinja::Limits& limits = {}) const {
    return render_marked(variables, now, limits).bytes;
  }
  // The text with the marks of the parts that come from marked strings of the variables.
  MarkedText render_marked(const jinja::Dict& variables, std::time_t now, const jinja::Limits& limits = {}) const;

 private:
  std::string name_;
  std::string source_;
  std::unique_ptr<const jinja::Template> parsed_;
};

}  // namespace minimind
