#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "weights/io/error.h"

namespace minimind {

// A place in the text of a GBNF grammar.
class GrammarReader {
 public:
  // Throws Error where the text is not UTF-8.
  GrammarReader(std::string_view text, const std::string& source);

  bool at_end() const { return at_ == text_.size(); }
  std::size_t position() const { return at_; }
  char peek() const { return text_[at_]; }
  char take() { return text_[at_++]; }
  bool starts_with(std::string_view wanted) const { return text_.substr(at_).starts_with(wanted); }
  bool take_if(std::string_view wanted);

  // Blanks, comments and, if wanted, ends of lines.
  void skip_space(bool newlines);

  // A character of a text or a set, or the escape of one.
  char32_t take_character();

  [[noreturn]] void fail(const std::string& reason) const { fail_at(at_, reason); }
  [[noreturn]] void fail_at(std::size_t position, const std::string& reason) const;

  // What `action` returns; an Error of the builder, which knows no place, is given that of `position`.
  template <class Action>
  auto located(std::size_t position, Action action) const {
    try {
      return action();
    } catch (const LocatedError&) {
      throw;
    } catch (const Error& error) {
      fail_at(position, error.what());
    }
  }

 private:
  class LocatedError : public Error {
   public:
    using Error::Error;
  };

  char32_t take_escape();

  std::string_view text_;
  const std::string& source_;
  std::size_t at_ = 0;
};

}  // namespace minimind
