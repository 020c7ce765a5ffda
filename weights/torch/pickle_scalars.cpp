#include "weights/torch/pickle_scalars.h"

#include <fmt/core.h>

#include <bit>
#include <charconv>
#include <cstring>
#include <system_error>

#include "weights/io/quote.h"

namespace minimind::pickle {
namespace {

template <typename T>
T parse_number(std::string_view digits, const ByteReader& reader) {
  T value{};
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc{} || stop != end) {
    reader.fail(fmt::format("damaged or hostile pickle: {} is no number of 64 bits", quoted(digits)));
  }
  return value;
}

// The text forms of protocol 0. It cannot express torch.save's storage references, so its escapes are not worth
// decoding here.
Text unescaped(std::string_view text, const ByteReader& reader) {
  if (text.find('\\') != std::string_view::npos) {
    reader.fail("damaged or hostile pickle: an escape of protocol 0, which torch.save cannot write");
  }
  return Text{text};
}

Text read_quoted_text(ByteReader& reader) {
  const std::string_view text = reader.take_line();
  if (text.size() < 2 || (text.front() != '\'' && text.front() != '"') || text.back() != text.front()) {
    reader.fail(fmt::format("damaged or hostile pickle: the string {} has no quotes", quoted(text)));
  }
  return unescaped(text.substr(1, text.size() - 2), reader);
}

// "00" and "01" are how protocol 0 writes False and True.
Value read_decimal(ByteReader& reader) {
  const std::string_view digits = reader.take_line();
  if (digits == "00" || digits == "01") return digits == "01";
  return parse_number<std::int64_t>(digits, reader);
}

std::int64_t read_long_decimal(ByteReader& reader) {
  std::string_view digits = reader.take_line();
  if (digits.ends_with('L')) digits.remove_suffix(1);
  return parse_number<std::int64_t>(digits, reader);
}

// Two's complement of any size, the lowest byte first.
Value read_long(std::uint64_t size, ByteReader& reader) {
  const std::string_view digits = reader.take_text(size);
  if (digits.size() > sizeof(std::int64_t)) return BigInteger{digits};
  std::int64_t value = !digits.empty() && static_cast<signed char>(digits.back()) < 0 ? -1 : 0;
  std::memcpy(&value, digits.data(), digits.size());
  return value;
}

// The one big-endian number of a pickle.
double read_binary_float(ByteReader& reader) {
  return std::bit_cast<double>(__builtin_bswap64(reader.read<std::uint64_t>()));
}

std::optional<Value> read_number(Op op, ByteReader& reader) {
  switch (op) {
    case Op::NONE:
      return None{};
    case Op::NEWTRUE:
      return true;
    case Op::NEWFALSE:
      return false;
    case Op::BININT:
      return std::int64_t{reader.read<std::int32_t>()};
    case Op::BININT1:
      return std::int64_t{reader.read<std::uint8_t>()};
    case Op::BININT2:
      return std::int64_t{reader.read<std::uint16_t>()};
    case Op::INT:
      return read_decimal(reader);
    case Op::LONG:
      return read_long_decimal(reader);
    case Op::LONG1:
      return read_long(reader.read<std::uint8_t>(), reader);
    case Op::LONG4:
      return read_long(reader.read<std::uint32_t>(), reader);
    case Op::FLOAT:
      return parse_number<double>(reader.take_line(), reader);
    case Op::BINFLOAT:
      return read_binary_float(reader);
    default:
      return std::nullopt;
  }
}

std::optional<Value> read_text(Op op, ByteReader& reader) {
  switch (op) {
    case Op::STRING:
      return read_quoted_text(reader);
    case Op::UNICODE:
      return unescaped(reader.take_line(), reader);
    case Op::BINSTRING:
    case Op::BINUNICODE:
      return Text{reader.take_text(reader.read<std::uint32_t>())};
    case Op::SHORT_BINSTRING:
    case Op::SHORT_BINUNICODE:
      return Text{reader.take_text(reader.read<std::uint8_t>())};
    case Op::BINUNICODE8:
      return Text{reader.take_text(reader.read<std::uint64_t>())};
    case Op::SHORT_BINBYTES:
      return Bytes{reader.take_text(reader.read<std::uint8_t>())};
    case Op::BINBYTES:
      return Bytes{reader.take_text(reader.read<std::uint32_t>())};
    case Op::BINBYTES8:
    case Op::BYTEARRAY8:
      return Bytes{reader.take_text(reader.read<std::uint64_t>())};
    default:
      return std::nullopt;
  }
}

}  // namespace

std::uint64_t parse_index(std::string_view digits, const ByteReader& reader) {
  return parse_number<std::uint64_t>(digits, reader);
}

std::optional<Value> read_scalar(Op op, ByteReader& reader) {
  auto value = read_text(op, reader);
  return value ? value : read_number(op, reader);
}

}  // namespace minimind::pickle
