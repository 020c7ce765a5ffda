"""Completions and man pages: they have every option of --help, and bash, zsh, fish, man and mandoc read them.

MINIMIND_PROGRAM names a program other than ./minimind. A shell or reader that is not installed is skipped.
"""

import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = os.environ.get("MINIMIND_PROGRAM", str(ROOT / "minimind"))
SHELLS = ("bash", "zsh", "fish")


def run(*arguments, language="en"):
    done = subprocess.run([PROGRAM, "--lang", language, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{arguments}: status {done.returncode}: {done.stderr}")
    return done.stdout


def commands():
    """Each command, as --help lists them."""
    return re.findall(r"^  ([a-z]+) ", run("--help").split("\nCommands:\n")[1].split("\n\n")[0], re.M)


def options_of(*command):
    """The names of each option that --help lists, such as ["-m", "--model"]."""
    labels = re.findall(r"^ {2,6}(-.*?)(?:  |$)", run(*command, "--help"), re.M)
    return [re.findall(r"(?:^|, )(--?[\w-]+)", label) for label in labels]


def bash(line, then='printf "%s\\n" "${COMPREPLY[@]}"'):
    """What bash offers for the last word of the line, or what `then` prints."""
    words = re.findall(r"=|[^\s=]+", line) + ([""] if line.endswith(" ") else [])
    script = f"""compopt() {{ echo "compopt $*"; }}
{run("completion", "bash")}
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_minimind
{then}"""
    done = subprocess.run(["bash", "-c", script, "bash", *words], capture_output=True, text=True, check=True)
    return done.stdout.split() if not done.stderr else [done.stderr]


def fish(line):
    """What fish offers for the last word of the line, without descriptions."""
    script = run("completion", "fish") + "\ncomplete -C $argv[1]"
    done = subprocess.run(["fish", "--no-config", "-c", script, line], capture_output=True, text=True, check=True,
                          env={**os.environ, "HOME": tempfile.gettempdir()})
    return [offered.split("\t")[0] for offered in done.stdout.splitlines()] if not done.stderr else [done.stderr]


class Zsh:
    """A zsh at a terminal, with the completions."""

    def __init__(self, folder):
        (pathlib.Path(folder) / "_minimind").write_text(run("completion", "zsh"))
        self.child, self.terminal = pty.fork()
        if self.child == 0:
            os.chdir(folder)
            os.environ.update(TERM="dumb", COLUMNS="200", PS1="$ ", ZDOTDIR=folder)
            os.execvp("zsh", ["zsh", "-f", "-i"])
        self.send("fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -d $PWD/dump; LISTMAX=9999; stty -echo; print rea''dy\n")
        self.read_until(["ready"])

    def send(self, text):
        os.write(self.terminal, text.encode())

    def read_until(self, expected, seconds=60):
        """What zsh writes until it has written all of this; what is missing after so many seconds is an error."""
        text, end = "", time.monotonic() + seconds
        while missing := [part for part in expected if part not in text]:
            if not select.select([self.terminal], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"zsh has not written {missing} but {text!r}")
            text += os.read(self.terminal, 65536).decode(errors="replace")
        return text

    def complete(self, line, *expected):
        """What zsh writes when it completes the line, with all that is expected: a list, or the rest of the line."""
        self.send(line + "\t")
        text = self.read_until(expected)
        self.send("\x15print do''ne\n")
        return text + self.read_until(["done"])

    def close(self):
        os.close(self.terminal)
        os.waitpid(self.child, 0)


class Completion(unittest.TestCase):
    def test_every_option_is_in_all_pages(self):
        for command in [(), *((name,) for name in commands())]:
            page = run("--man", *(command or ("minimind",)))
            for names in options_of(*command):
                with self.subTest(command=command, option=names):
                    label = ", ".join(names).replace("-", r"\-")
                    self.assertIn(f"\n\\fB{label}\\fR", page)
        self.assertGreater(len(commands()), 10)

    def test_every_option_is_in_all_completions(self):
        scripts = {shell: run("completion", shell) for shell in SHELLS}
        for command in commands():
            parts = {
                "bash": scripts["bash"].split(f"\n    {command})\n")[1].split("\n      ;;\n")[0],
                "zsh": scripts["zsh"].split(f"\n      {command})\n")[1].split("\n        ;;\n")[0],
                "fish": "\n".join(line for line in scripts["fish"].splitlines() if f"_from {command}'" in line),
            }
            for name in (name for names in options_of(command) for name in names):
                bare = name.lstrip("-")
                patterns = {"bash": rf"options='(.* )?{name}[ ']", "zsh": rf"(\)|\*){name}[=+\[]",
                            "fish": rf" -{'l' if name.startswith('--') else 's'} {bare} "}
                for shell in SHELLS:
                    with self.subTest(shell=shell, command=command, option=name):
                        self.assertRegex(parts[shell], patterns[shell])

    def test_descriptions_are_in_the_language(self):
        for shell in ("zsh", "fish"):
            self.assertIn("续写文本", run("completion", shell, language="zh"))
        self.assertIn(".SH 选项\n", run("--man", "chat", language="zh"))

    def test_another_shell_or_page_is_a_usage_error(self):
        for arguments, expected in (("completion tcsh", "expected bash, zsh or fish"), ("completion", "requires a value"),
                                    ("--man chess", "expected minimind, generate, chat")):
            done = subprocess.run([PROGRAM, *arguments.split()], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(expected, done.stderr)

    @unittest.skipUnless(shutil.which("bash"), "there is no bash")
    def test_bash_offers_options_and_values(self):
        for command in commands():
            self.assertCountEqual(bash(f"minimind {command} -"), sum(options_of(command), []), command)
        self.assertCountEqual(bash("minimind -"), sum(options_of(), []))
        self.assertEqual(bash("minimind cha"), ["chat"])
        self.assertEqual(bash("minimind --lang zh ins"), ["inspect"])
        self.assertEqual(bash("minimind help perp"), ["perplexity"])
        self.assertEqual(bash("minimind completion "), list(SHELLS))
        self.assertEqual(bash("minimind --man ren"), ["render"])
        self.assertEqual(bash("minimind convert --type q8"), ["q8_0"])
        self.assertEqual(bash("minimind generate --type q8"), ["q8_0", "q8_r"])
        self.assertEqual(bash("minimind generate --kv-type="), ["f32", "f16", "q8_0"])
        self.assertEqual(bash("minimind generate --kv-type=f1"), ["f16"])
        self.assertEqual(bash("minimind bench --type f16,q8"), ["f16,q8_0", "f16,q8_r"])
        self.assertEqual(bash("minimind chat --lang "), ["zh", "en"])
        for line in ("chat ", "chat -m ", "chat --model=", "chat out/full", "convert x.pth ", "serve --lora "):
            self.assertEqual(bash("minimind " + line), ["compopt", "-o", "default"], line)
        self.assertEqual(bash("minimind serve --weights-from "), ["compopt", "-o", "dirnames"])
        for line in ("generate -n ", "generate -p ", "serve --port 8"):
            self.assertEqual(bash("minimind " + line), [], line)

    @unittest.skipUnless(shutil.which("fish"), "there is no fish")
    def test_fish_offers_options_and_values(self):
        for command in commands():
            offered = fish(f"minimind {command} --")
            for name in (name for names in options_of(command) for name in names if name.startswith("--")):
                self.assertIn(name, offered, command)
        self.assertEqual(fish("minimind cha"), ["chat"])
        self.assertEqual(fish("minimind help perp"), ["perplexity"])
        self.assertEqual(fish("minimind completion z"), ["zsh"])
        self.assertEqual(sorted(fish("minimind generate --kv-type ")), ["f16", "f32", "q8_0"])
        self.assertIn("f16,q8_0", fish("minimind bench --type f16,q8"))
        self.assertEqual(fish(f"minimind chat -m {ROOT}/READ"), [f"{ROOT}/README.md"])
        self.assertEqual(fish(f"minimind chat {ROOT}/READ"), [f"{ROOT}/README.md"])
        self.assertEqual(fish(f"minimind serve --weights-from {ROOT}/READ"), [])
        self.assertEqual(fish("minimind generate -n "), [])

    @unittest.skipUnless(shutil.which("zsh"), "there is no zsh")
    def test_zsh_offers_options_and_values(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        (pathlib.Path(folder) / "weights.pth").touch()
        (pathlib.Path(folder) / "runs").mkdir()
        zsh = Zsh(folder)
        self.addCleanup(zsh.close)
        for command in commands():
            zsh.complete(f"minimind {command} --", *(name for names in options_of(command) for name in names if name.startswith("--")))
        for line, expected in (("minimind ", "perplexity"), ("minimind help perp", "lexity"), ("minimind completion z", "sh"),
                               ("minimind generate --kv-type ", "q8_0"), ("minimind bench --type f16,q8", "_0"),
                               ("minimind chat -m w", "eights.pth"), ("minimind chat w", "eights.pth")):
            zsh.complete(line, expected)
        self.assertNotIn("weights.pth", zsh.complete("minimind serve --weights-from ", "runs/"))

    def pages(self, language):
        """The man pages in files."""
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        for page in ["minimind", *commands()]:
            (folder / f"{page}.1").write_text(run("--man", page, language=language))
        return sorted(folder.iterdir())

    def test_they_are_installed_where_man_and_the_shells_look(self):
        share = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        subprocess.run([ROOT / "tools/install_pages.sh", PROGRAM, share, share / "zsh/site-functions"], check=True)
        installed = {str(file.relative_to(share)): file.read_text() for file in share.rglob("*") if file.is_file()}
        expected = {"bash-completion/completions/minimind": run("completion", "bash"),
                    "fish/vendor_completions.d/minimind.fish": run("completion", "fish"),
                    "zsh/site-functions/_minimind": run("completion", "zsh")}
        for folder, language in (("man/man1", "en"), ("man/zh_CN/man1", "zh")):
            expected[f"{folder}/minimind.1"] = run("--man", "minimind", language=language)
            expected |= {f"{folder}/minimind-{name}.1": run("--man", name, language=language) for name in commands()}
        self.assertEqual(installed, expected)

    @unittest.skipUnless(shutil.which("mandoc"), "there is no mandoc")
    def test_mandoc_finds_nothing_to_say(self):
        for language, level in (("en", "style"), ("zh", "warning")):  # whose style counts the bytes of \\[u6587] for each character
            for page in self.pages(language):
                done = subprocess.run(["mandoc", "-K", "utf-8", "-T", "lint", "-W", level, page], capture_output=True, text=True)
                self.assertEqual(done.stdout + done.stderr, "", language)

    @unittest.skipUnless(shutil.which("man") and shutil.which("groff"), "there is no man or groff")
    def test_man_shows_the_pages_without_warnings(self):
        for language in ("en", "zh"):
            for page in self.pages(language):
                done = subprocess.run(["man", "--warnings=w", "-E", "UTF-8", "-l", "-Tutf8", "-P", "cat", page], capture_output=True,
                                      text=True, env={**os.environ, "LC_ALL": "C.UTF-8", "MANROFFSEQ": "", "MANWIDTH": "80"})
                self.assertEqual(done.stderr, "", page)
                shown = re.sub(r".\x08|\x1b\[[\d;]*m", "", done.stdout)
                self.assertIn("minimind", shown)
                if page.name == "chat.1" and language == "en":
                    self.assertIn("minimind chat out/full_sft_768.pth", shown)
                    self.assertRegex(shown, r"\n +-m, --model MODEL\n +a +\.pth, +\.pt")


if __name__ == "__main__":
    unittest.main()
