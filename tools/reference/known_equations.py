"""Writes weights/model/known_equations.h: which texts of MiniMind's equations are known, by the history of a clone of MiniMind.

    python tools/reference/known_equations.py FOLDER_OF_A_CLONE > weights/model/known_equations.h

The digest of a class or function is the start of the SHA-256 of its tokens, one space after each, without comments, docstrings and the
default of a parameter theta, as spelling_of_equations in weights/model/python_config.cpp gives them.
"""

import hashlib
import io
import pathlib
import re
import subprocess
import sys
import tokenize

SOURCE = pathlib.Path(__file__).parents[2] / "weights/model"
FILES = ("model/model.py", "model/model_minimind.py")
LONG_OPERATIONS = ("**", "//", "==", "!=", "<=", ">=", "->", ":=")
SKIPPED = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
DIGITS = 12


def equations():
    """The names in python_config.cpp."""
    text = (SOURCE / "python_config.cpp").read_text()
    return re.findall(r'"(\w+)"', re.search(r"equations_of_models\[\] = \{(.*?)\}", text, re.S)[1])


def words(token):
    """A token as python::spelling writes it."""
    if token.type == tokenize.STRING:
        text = re.sub(r"^\w*", "", token.string)
        return [text[3:-3] if text[:3] in ('"""', "'''") else text[1:-1]]
    if token.type != tokenize.OP or token.string in LONG_OPERATIONS:
        return [token.string]
    return list(token.string)


def spellings(text):
    """(name, spelling) of each top-level class and function."""
    statement, name, result = [], None, {}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SKIPPED:
            statement.append(token)
        elif token.type in (tokenize.NEWLINE, tokenize.ENDMARKER) and statement:
            if statement[0].start[1] == 0:
                defines = statement[0].string in ("class", "def")
                name = statement[1].string if defines else None
                if defines:
                    result[name] = ""
            docstring = len(statement) == 1 and statement[0].type == tokenize.STRING
            if name and not docstring:
                result[name] += "".join(word + " " for token in statement for word in words(token))
            statement = []
    return result


def main():
    git = ["git", "-C", sys.argv[1]]
    known = set()
    for path in FILES:
        for commit in subprocess.check_output([*git, "log", "--format=%H", "--", path], text=True).split():
            version = subprocess.run([*git, "show", f"{commit}:{path}"], capture_output=True, text=True)
            for name, spelling in spellings(version.stdout).items() if version.returncode == 0 else ():
                if name in equations():
                    spelling = re.sub(r"(theta : float = )\S+", r"\1", spelling, count=1)  # is read as a setting
                    known.add(hashlib.sha256(spelling.encode()).hexdigest()[:DIGITS])
    newest = subprocess.check_output([*git, "log", "-1", "--format=%cs"], text=True).strip()
    print("#pragma once\n\n#include <string_view>\n\nnamespace minimind {\n")
    print(f"// The classes and functions of MiniMind's equations in each version until {newest}, as digests:")
    print("// tools/reference/known_equations.py.")
    print("inline constexpr std::string_view known_equations[] = {")
    for digest in sorted(known):
        print(f'    "{digest}",')
    print("};\n\n}  // namespace minimind")


if __name__ == "__main__":
    main()
