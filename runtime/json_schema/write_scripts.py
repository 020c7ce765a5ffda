"""Writes script_table.h, the characters of each script of Unicode, from the files of Debian's package unicode-data.

    python3 runtime/json_schema/write_scripts.py /usr/share/unicode
    clang-format -i runtime/json_schema/script_table.h
"""

import pathlib
import sys

WIDTH = 100
TARGET = pathlib.Path(__file__).with_name('script_table.h')
HEAD = '''#pragma once

#include <array>
#include <string_view>

namespace minimind {{

struct Script {{
  std::string_view names;   // separated by spaces
  std::string_view ranges;  // in hexadecimal, in order
}};

// From Scripts.txt and PropertyValueAliases.txt of Unicode {version}: write_scripts.py writes this file.
inline constexpr std::array<Script, {count}> scripts{{{{
'''
TAIL = '''}};

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
