"""Writes scripts.cpp, the characters of each script of Unicode, from the files of Debian's package unicode-data.

    python3 runtime/json_schema/write_scripts.py /usr/share/unicode
    clang-format -i runtime/json_schema/scripts.cpp
"""

import pathlib
import sys

WIDTH = 100
TARGET = pathlib.Path(__file__).with_name('scripts.cpp')
HEAD = '''#include "runtime/json_schema/scripts.h"

#include <algorithm>
#include <array>
#include <vector>

namespace minimind {{
namespace {{

struct Script {{
  std::string_view names;   // separated by spaces
  std::string_view ranges;  // in hexadecimal, in order
}};

// From Scripts.txt and PropertyValueAliases.txt of Unicode {version}: write_scripts.py writes this file.
constexpr std::array<Script, {count}> scripts{{{{
'''
TAIL = '''}};

// Calls use(word) with the words of a text that is separated by spaces.
template <class Use>
void for_each_word(std::string_view text, Use use) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    use(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

std::optional<CodePoints> characters_of_script(std::string_view name) {
  for (const Script& script : scripts) {
    bool named = false;
    for_each_word(script.names, [&](std::string_view known) { named = named || known == name; });
    if (!named) continue;
    std::vector<CodePoints::Range> ranges;
    for_each_word(script.ranges, [&](std::string_view range) {
      const std::size_t dash = std::min(range.find('-'), range.size());
      const char32_t first = *hexadecimal(range.substr(0, dash));
      ranges.push_back({first, dash == range.size() ? first : *hexadecimal(range.substr(dash + 1))});
    });
    return CodePoints(std::move(ranges));
  }
  return std::nullopt;
}

}  // namespace minimind
'''


def fields(path):
    for line in path.read_text(encoding='utf-8').splitlines():
        parts = [part.strip() for part in line.split('#')[0].split(';')]
        if len(parts) > 1:
            yield parts


def joined(ranges):
    result = []
    for first, last in sorted(ranges):
        if result and result[-1][1] + 1 == first:
            result[-1][1] = last
        else:
            result.append([first, last])
    return [f'{first:X}' if first == last else f'{first:X}-{last:X}' for first, last in result]


def literals(words):
    lines = ['']
    for word in words:
        if len(lines[-1]) + len(word) > WIDTH:
            lines.append('')
        lines[-1] += word + ' '
    lines[-1] = lines[-1].rstrip()
    return '\n     '.join(f'"{line}"' for line in lines)


def main():
    folder = pathlib.Path(sys.argv[1])
    ranges = {}
    for points, script in fields(folder / 'Scripts.txt'):
        first, _, last = points.partition('..')
        ranges.setdefault(script, []).append((int(first, 16), int(last or first, 16)))
    names = {aliases[1]: aliases for kind, *aliases in fields(folder / 'PropertyValueAliases.txt') if kind == 'sc'}
    version = (folder / 'Scripts.txt').read_text(encoding='utf-8').split('-')[1].split('.txt')[0]
    rows = [f'    {{"{" ".join(dict.fromkeys(names[script]))}", {literals(joined(ranges[script]))}}},\n'
            for script in sorted(ranges)]
    TARGET.write_text(HEAD.format(version=version, count=len(rows)) + ''.join(rows) + TAIL, encoding='utf-8')


main()
