"""tools/packages.sh: what it names and installs, with a compiler and an apt-get that only say what they are asked."""

import os
import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).parent.parent / "tools/packages.sh"
TOOLS = ("sh", "awk", "cat", "grep", "id", "env")

# Finds the headers whose names are lines of the file `headers` beside it.
COMPILER = """#!/bin/sh
read -r line
header=${line#*<}
grep -qx "${header%>*}" "$(command -v headers)"
"""
# "Installs" fmt and what `headers` has not.
APT_GET = """#!/bin/sh
echo "apt-get $*" >> "$(command -v log)"
case "$*" in *libfmt-dev*) echo fmt/core.h >> "$(command -v headers)" ;; esac
"""


class Packages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.bin = pathlib.Path(folder.name)
        for tool in TOOLS:
            source = next(p for p in (pathlib.Path("/usr/bin", tool), pathlib.Path("/bin", tool)) if p.exists())
            (self.bin / tool).symlink_to(source)
        self.add("c++", COMPILER)
        self.add("headers", "zlib.h\n")

    def add(self, name, text):
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def run_script(self, *arguments):
        return subprocess.run(["sh", SCRIPT, *arguments], env={**os.environ, "PATH": str(self.bin)}, capture_output=True, text=True)

    def test_what_the_compiler_finds_is_there(self):
        result = self.run_script("install", "c++", "zlib1g-dev")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))

    def test_without_apt_missing_libraries_are_named_as_their_authors_do(self):
        result = self.run_script("install", "c++", "zlib1g-dev", "libfmt-dev", "nlohmann-json3-dev")
        self.assertEqual(result.returncode, 1)
        self.assertIn("missing: fmt nlohmann-json; install them", result.stderr)
        self.assertIn("libfmt-dev nlohmann-json3-dev", result.stderr)
        self.assertNotIn("apt-get: not found", result.stderr)

    def test_a_missing_compiler_is_named_first(self):
        result = self.run_script("check", "clang++-99", "libfmt-dev")
        self.assertEqual(result.returncode, 1)
        self.assertIn("missing: clang++-99", result.stderr)

    def test_only_missing_packages_are_installed(self):
        self.add("apt-get", APT_GET)
        self.add("log", "")
        result = self.run_script("install", "c++", "zlib1g-dev", "libfmt-dev")
        self.assertEqual(result.returncode, 0, result.stderr)
        log = (self.bin / "log").read_text()
        self.assertIn("libfmt-dev", log)
        self.assertNotIn("zlib1g-dev", log)

    def test_a_package_that_brings_no_header_is_an_error(self):
        self.add("apt-get", APT_GET)
        self.add("log", "")
        result = self.run_script("install", "c++", "libxsimd-dev")
        self.assertEqual(result.returncode, 1)
        self.assertIn("missing even so: xsimd", result.stderr)

    def test_check_installs_nothing(self):
        self.add("apt-get", APT_GET)
        self.add("log", "")
        self.assertEqual(self.run_script("check", "c++", "libfmt-dev").returncode, 1)
        self.assertEqual((self.bin / "log").read_text(), "")


if __name__ == "__main__":
    unittest.main()
