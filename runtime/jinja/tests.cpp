#include "runtime/jinja/tests.h"

#include "runtime/jinja/operations.h"
#include "runtime/jinja/show.h"
#include "runtime/jinja/text.h"

namespace minimind::jinja {
namespace {

Value remainder(Context& context, const Value& subject, const Value& divisor) {
  return binary_operation(context, Operator::modulo, subject, divisor);
}

template <int wanted>
Value is_of_parity(Context& context, const Value& subject, const Bound&) {
  return equal(remainder(context, subject, std::int64_t{2}), std::int64_t{wanted}, context.budget);
}

template <Operator op>
Value compares(Context& context, const Value& subject, const Bound& arguments) {
  return compare(context, op, subject, arguments.at(0));
}

Value is_divisible(Context& context, const Value& subject, const Bound& arguments) {
  return equal(remainder(context, subject, arguments.at(0)), std::int64_t{0}, context.budget);
}

Value is_same(Context&, const Value& subject, const Bound& arguments) {
  const Value& other = arguments.at(0);
  if (subject.is_none() || other.is_none()) return subject.is_none() && other.is_none();
  if (subject.is_bool() || other.is_bool()) {
    return subject.is_bool() && other.is_bool() && subject.truth() == other.truth();
  }
  const bool of_unknown_identity = (subject.text() && other.text()) || (subject.is_number() && other.is_number());
  if (of_unknown_identity) throw Failure("'sameas' of texts or numbers is not supported: compare them with ==");
  return subject.identity() != nullptr && subject.identity() == other.identity();
}

Value is_callable(Context&, const Value& subject, const Bound&) {
  return subject.is_undefined() || subject.method() || subject.object(Object::Kind::macro) ||
         subject.object(Object::Kind::function) || subject.object(Object::Kind::loop);
}

Value is_sequence(Context&, const Value& subject, const Bound&) {
  return subject.is_undefined() || subject.text() || subject.list() || subject.dict() || subject.range();
}

// The name of a filter or test is looked up in a Python dict.
void require_hashable(const Value& value) {
  const bool is_list = value.list() && !value.list()->is_tuple;
  if (is_list || value.dict() || value.view()) throw Failure("the name looked for is " + value.kind_name());
}

Value names_filter(Context&, const Value& subject, const Bound&) {
  require_hashable(subject);
  return subject.text() && is_filter(subject.text()->bytes);
}

Value names_test(Context&, const Value& subject, const Bound&) {
  require_hashable(subject);
  return subject.text() && is_test(subject.text()->bytes);
}

template <bool wanted>
Value is_boolean_of(Context&, const Value& subject, const Bound&) {
  return subject.is_bool() && subject.truth() == wanted;
}

using Run = decltype(Builtin::run);

constexpr Run is_defined = [](Context&, const Value& s, const Bound&) -> Value { return !s.is_undefined(); };
constexpr Run is_undefined = [](Context&, const Value& s, const Bound&) -> Value { return s.is_undefined(); };
constexpr Run is_none = [](Context&, const Value& s, const Bound&) -> Value { return s.is_none(); };
constexpr Run is_boolean = [](Context&, const Value& s, const Bound&) -> Value { return s.is_bool(); };
constexpr Run is_integer = [](Context&, const Value& s, const Bound&) -> Value {
  return s.get_if<std::int64_t>() != nullptr;
};
constexpr Run is_float = [](Context&, const Value& s, const Bound&) -> Value { return s.get_if<double>() != nullptr; };
constexpr Run is_number = [](Context&, const Value& s, const Bound&) -> Value { return s.is_number(); };
constexpr Run is_string = [](Context&, const Value& s, const Bound&) -> Value { return s.text() != nullptr; };
constexpr Run is_mapping = [](Context&, const Value& s, const Bound&) -> Value { return s.dict() != nullptr; };
constexpr Run is_escaped = [](Context&, const Value& s, const Bound&) -> Value { return s.text() && s.text()->markup; };
constexpr Run can_iterate = [](Context&, const Value& s, const Bound&) -> Value { return is_iterable(s); };
constexpr Run is_in_lower_case = [](Context& context, const Value& s, const Bound&) -> Value {
  return is_lower(shown(s, context.budget));
};
constexpr Run is_in_upper_case = [](Context& context, const Value& s, const Bound&) -> Value {
  return is_upper(shown(s, context.budget));
};

}  // namespace

const std::vector<Builtin>& tests() {
  static const std::vector<Builtin> table = {
      {"odd", {}, 0, is_of_parity<1>},
      {"even", {}, 0, is_of_parity<0>},
      {"divisibleby", {"num"}, 1, is_divisible},
      {"defined", {}, 0, is_defined},
      {"undefined", {}, 0, is_undefined},
      {"none", {}, 0, is_none},
      {"boolean", {}, 0, is_boolean},
      {"true", {}, 0, is_boolean_of<true>},
      {"false", {}, 0, is_boolean_of<false>},
      {"integer", {}, 0, is_integer},
      {"float", {}, 0, is_float},
      {"number", {}, 0, is_number},
      {"string", {}, 0, is_string},
      {"mapping", {}, 0, is_mapping},
      {"sequence", {}, 0, is_sequence},
      {"iterable", {}, 0, can_iterate},
      {"callable", {}, 0, is_callable},
      {"escaped", {}, 0, is_escaped},
      {"lower", {}, 0, is_in_lower_case},
      {"upper", {}, 0, is_in_upper_case},
      {"sameas", {"other"}, 1, is_same},
      {"filter", {}, 0, names_filter},
      {"test", {}, 0, names_test},
      {"in", {"seq"}, 1, compares<Operator::in>},
      {"==", {"b"}, 1, compares<Operator::equal>},
      {"eq", {"b"}, 1, compares<Operator::equal>},
      {"equalto", {"b"}, 1, compares<Operator::equal>},
      {"!=", {"b"}, 1, compares<Operator::not_equal>},
      {"ne", {"b"}, 1, compares<Operator::not_equal>},
      {">", {"b"}, 1, compares<Operator::greater>},
      {"gt", {"b"}, 1, compares<Operator::greater>},
      {"greaterthan", {"b"}, 1, compares<Operator::greater>},
      {">=", {"b"}, 1, compares<Operator::greater_equal>},
      {"ge", {"b"}, 1, compares<Operator::greater_equal>},
      {"<", {"b"}, 1, compares<Operator::less>},
      {"lt", {"b"}, 1, compares<Operator::less>},
      {"lessthan", {"b"}, 1, compares<Operator::less>},
      {"<=", {"b"}, 1, compares<Operator::less_equal>},
      {"le", {"b"}, 1, compares<Operator::less_equal>},
  };
  return table;
}

}  // namespace minimind::jinja
