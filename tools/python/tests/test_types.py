"""Checks the types of the package and of a program that uses it, as `mypy --strict` does. Run: make test-python"""

import pathlib
import subprocess
import sys
import unittest

try:
    import mypy
except ImportError:
    mypy = None

PROGRAM = pathlib.Path(__file__).with_name("typed_program.py")


@unittest.skipIf(mypy is None, "mypy is not installed")
class Types(unittest.TestCase):
    def check(self, *arguments):
        command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", "/dev/null", *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_program_needs_no_casts(self):
        self.check(str(PROGRAM))

    def test_wrong_parameters_are_rejected(self):
        for call, found in (
            ("SamplingParams(max_tokenz=3)", "max_tokenz"),
            ('SamplingParams(temperature="hot")', "temperature"),
            ("SamplingParams(stop_token_ids=2)", "stop_token_ids"),
            ('Model().generate("a", max_tokens=3)', "max_tokens"),
            ('Model().generate("a", SamplingParams()).txt', "txt"),
        ):
            program = f"from minimind_cpp import Model, SamplingParams\nprint({call})\n"
            command = [sys.executable, "-m", "mypy", "--strict", "-c", program]
            done = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            self.assertIn(found, done.stdout)

    def test_the_package_is_typed(self):
        self.check("-p", "minimind_cpp")


if __name__ == "__main__":
    unittest.main()
