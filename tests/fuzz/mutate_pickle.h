#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/fuzz/mutate.h"
#include "tests/support/little_endian.h"

namespace minimind {

// One or more pickles as instructions, so that a change of one keeps the others readable.
class PickleMutator {
 public:
  explicit PickleMutator(Dice& dice) : dice_(dice) {}

  // Changes one to four instructions. What is after the last whole instruction is kept.
  std::string change(std::string_view bytes) {
    std::vector<Instruction> code;
    const std::size_t end = read(bytes, code);
    if (code.empty()) return std::string(bytes);
    for (std::size_t i = dice_.below(4) + 1; i-- > 0 && !code.empty();) change_one(code);
    std::string result;
    for (const Instruction& instruction : code) result += written(instruction);
    return result + std::string(bytes.substr(end));
  }

 private:
  // How the argument of an opcode is written.
  enum class Form { none, one, two, four, eight, line, two_lines, text_one, text_four, text_eight, unknown };
  struct Instruction {
    char op;
    std::string argument;  // without its length
  };

  static Form form_of(char op) {
    constexpr std::pair<Form, std::string_view> forms[] = {
        {Form::none, "(.012NQR)ab]de}lostu\x81\x85\x86\x87\x88\x89\x8f\x90\x91\x92\x93\x94\x97\x98"},
        {Form::one, "Khq\x80\x82"},
        {Form::two, "M\x83"},
        {Form::four, "Jjr\x84"},
        {Form::eight, "G\x95"},
        {Form::line, "FILPSVgp"},
        {Form::two_lines, "ci"},
        {Form::text_one, "UC\x8a\x8c"},
        {Form::text_four, "TXB\x8b"},
        {Form::text_eight, "\x8d\x8e\x96"},
    };
    for (const auto& [form, ops] : forms) {
      if (ops.find(op) != std::string_view::npos) return form;
    }
    return Form::unknown;
  }

  static std::size_t length_size(Form form) {
    return form == Form::text_one ? 1 : form == Form::text_four ? 4 : form == Form::text_eight ? 8 : 0;
  }

  static std::size_t fixed_size(Form form) {
    return form == Form::one ? 1 : form == Form::two ? 2 : form == Form::four ? 4 : form == Form::eight ? 8 : 0;
  }

  // Returns where the instructions end.
  static std::size_t read(std::string_view bytes, std::vector<Instruction>& code) {
    std::size_t at = 0;
    while (at < bytes.size()) {
      const char op = bytes[at];
      const Form form = form_of(op);
      std::size_t begin = at + 1, size = fixed_size(form);
      if (form == Form::unknown) return at;
      if (form == Form::line || form == Form::two_lines) {
        std::size_t end = bytes.find('\n', begin);
        if (form == Form::two_lines && end != std::string_view::npos) end = bytes.find('\n', end + 1);
        if (end == std::string_view::npos) return at;
        size = end + 1 - begin;
      } else if (const std::size_t width = length_size(form); width > 0) {
        if (bytes.size() - begin < width) return at;
        std::uint64_t length = 0;
        std::memcpy(&length, bytes.data() + begin, width);
        begin += width;
        if (length > bytes.size() - begin) return at;
        size = static_cast<std::size_t>(length);
      }
      if (size > bytes.size() - begin) return at;
      code.push_back({op, std::string(bytes.substr(begin, size))});
      at = begin + size;
    }
    return at;
  }

  static std::string written(const Instruction& instruction) {
    const Form form = form_of(instruction.op);
    std::string argument = instruction.argument;
    argument.resize(fixed_size(form) > 0 ? fixed_size(form) : argument.size());
    if ((form == Form::line || form == Form::two_lines) && !argument.ends_with('\n')) argument += '\n';
    if (form == Form::none) argument.clear();
    const std::uint64_t length = argument.size();
    return instruction.op + little_endian(length).substr(0, length_size(form)) + argument;
  }

  Instruction random_instruction() {
    constexpr std::string_view ops =
        "(.012NQR)ab]de}lostu\x81\x85\x86\x87\x88\x89\x8f\x90\x91\x92\x93\x94\x97\x98Khq\x80\x82M\x83Jjr\x84G\x95"
        "FILPSVgpciUC\x8a\x8cTXB\x8b\x8d\x8e\x96";
    constexpr std::string_view lines[] = {"1\n", "-7\n", "01\n", "2.5\n", "'a'\n", "0\n", "99999999999999999999\n"};
    constexpr std::string_view globals[] = {"collections\nOrderedDict\n",
                                            "torch._utils\n_rebuild_tensor_v2\n",
                                            "torch._utils\n_rebuild_parameter\n",
                                            "torch\nFloatStorage\n",
                                            "torch\nHalfStorage\n",
                                            "torch.storage\nUntypedStorage\n",
                                            "torch\nSize\n",
                                            "_codecs\nencode\n",
                                            "numpy.core.multiarray\n_reconstruct\n",
                                            "os\nsystem\n"};
    const char op = dice_.pick(ops);
    const Form form = form_of(op);
    if (form == Form::line) return {op, std::string(dice_.pick(lines))};
    if (form == Form::two_lines) return {op, std::string(dice_.pick(globals))};
    std::string argument = little_endian(dice_.number());
    if (op == 'h' || op == 'j' || op == 'q' || op == 'r') argument = little_endian(std::uint64_t{dice_.below(40)});
    return {op, argument};
  }

  void change_one(std::vector<Instruction>& code) {
    const std::size_t at = dice_.below(code.size());
    const auto place = code.begin() + static_cast<std::ptrdiff_t>(at);
    switch (dice_.below(7)) {
      case 0:
        code.erase(place);
        break;
      case 1:
        std::swap(code[at], code[dice_.below(code.size())]);
        break;
      case 2: {
        const Instruction copy = code[dice_.below(code.size())];
        code.insert(place, copy);
        break;
      }
      case 3: {
        const Instruction added = random_instruction();
        code.insert(place, dice_.one_in(8) ? dice_.below(200) + 1 : 1, added);
        break;
      }
      case 4:
        code[at] = random_instruction();
        break;
      default:
        if (length_size(form_of(code[at].op)) > 0 || dice_.one_in(2)) {
          mutate_bytes(code[at].argument);
        } else {
          code[at].argument = little_endian(dice_.number());
        }
    }
  }

  Dice& dice_;
};

}  // namespace minimind
