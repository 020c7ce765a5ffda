#pragma once

#include <string>
#include <string_view>

#include "runtime/grammar/grammar.h"

namespace minimind {

// Reads GBNF, the grammar format of llama.cpp (its grammars/README.md), as UTF-8:
//
//   name ::= alternatives                 names of letters, digits and -; `root` is the whole text
//   a | b, (a | b), a b                   one of them, a group, a sequence
//   "text", [a-z_], [^a-z], .             characters: in order, one of a set, one not of it, any
//   x*, x+, x?, x{m}, x{m,}, x{m,n}       repetitions of the literal, set, name or group before them
//   # to the end of the line              a comment
//
// Escapes in texts and sets: \n \r \t \\ \" \[ \] \- \xHH \uHHHH \UHHHHHHHH; the last three are code points.
// A rule ends with its line, but a line may be broken after ::=, after | and inside parentheses.
//
// Stricter than llama.cpp: a repeated rule, a rule that can never be finished, an empty set, a reversed range and a
// surrogate are errors. Its references to tokens, <think> and <[1000]>, are rejected, naming them. A rule may start
// with a part that may be empty even if it is repeated, as in ("a"?)*.
//
// Throws Error with `source`, line and column (in characters, from 1). Errors of GrammarBuilder::build() have the name
// of the rule instead.
Grammar parse_grammar(std::string_view text, const std::string& source);

// Parses a file that a person named, of at most 1 MiB, as parse_grammar() does; it may be a pipe. Throws Error, too, if
// it cannot be read.
Grammar load_grammar(const std::string& path);

}  // namespace minimind
