"""Tests of what pip, uv and build call, and of what is installed beside Python's modules. Run: make test-python"""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest
import unittest.mock
import zipfile

import minimind_cpp
from minimind_cpp import Model, SamplingParams

PYTHON = pathlib.Path(__file__).resolve().parents[1]
ROOT = PYTHON.parents[1]
VERSION = re.search(r"^VERSION := (.*)$", (ROOT / "Makefile").read_text(), re.M)[1]


def build(folder, call, sources=PYTHON, **environment):
    """As pip runs it: in a process whose folder is that of pyproject.toml."""
    return subprocess.run(
        [sys.executable, "-c", f"import backend; print(backend.{call})", str(folder)],
        cwd=sources, env={**os.environ, "PYTHONPATH": str(sources), "PYTHONDONTWRITEBYTECODE": "1", **environment},
        capture_output=True, text=True,
    )  # fmt: skip


class Builds(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def built(self, call):
        done = build(self.folder, f"{call}(__import__('sys').argv[1])")
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.folder / done.stdout.splitlines()[-1]

    def test_the_root_of_the_repository_is_the_same_project(self):
        def build_system(folder):
            return re.search(r"^requires.*\nbuild-backend.*\nbackend-path = \[(.*)\]$", (folder / "pyproject.toml").read_text(), re.M)

        of_root, own = build_system(ROOT), build_system(PYTHON)
        self.assertEqual((of_root[1], own[1]), ('"tools/python"', '"."'))
        self.assertEqual(of_root[0].replace("tools/python", "."), own[0])
        done = build(self.folder, "prepare_metadata_for_build_wheel(__import__('sys').argv[1])", ROOT, PYTHONPATH=str(PYTHON))
        self.assertEqual(done.stdout, f"minimind_cpp-{VERSION}.dist-info\n", done.stderr)

    def test_an_sdist_has_what_make_needs_and_a_project_at_its_top(self):
        file = self.built("build_sdist")
        self.assertEqual(file.name, f"minimind_cpp-{VERSION}.tar.gz")
        with tarfile.open(file) as archive:
            archive.extractall(self.folder)
        unpacked = self.folder / f"minimind_cpp-{VERSION}"
        self.assertEqual((unpacked / "pyproject.toml").read_bytes(), (ROOT / "pyproject.toml").read_bytes())
        self.assertEqual(build(self.folder, "name_and_version()", unpacked / "tools/python").stdout, f"minimind_cpp-{VERSION}\n")
        self.assertIn(f"Version: {VERSION}\n", (unpacked / "PKG-INFO").read_text())
        command = ["make", "-n", "-C", unpacked, "lib", "program", "licences"]
        done = subprocess.run(command, env={**os.environ, "MAKEFLAGS": ""}, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_an_sdist_may_have_the_libraries(self):
        libraries = self.folder / "sysroot"
        subprocess.run([ROOT / "tools/sysroot_of_sources.sh", libraries, "cc", "ar"], check=True)
        (libraries / "LICENSES.txt").write_text("those of the libraries")
        with unittest.mock.patch.dict(os.environ, SDIST_LIBRARIES=str(libraries)), tarfile.open(self.built("build_sdist")) as archive:
            archive.extractall(self.folder)
        unpacked = self.folder / f"minimind_cpp-{VERSION}"
        bundled = unpacked / "libraries"
        self.assertFalse([path for path in bundled.rglob("*") if path.is_symlink()])
        command = ["c++", "-std=c++20", "-I.", "-isystem", bundled / "include", "-M", *(unpacked / "tools/http").glob("*.cpp")]
        headers = subprocess.run(command, cwd=unpacked, capture_output=True, text=True, check=True).stdout
        self.assertNotRegex(headers, "/usr/include/(boost|CLI|fmt|nlohmann|xsimd)")
        subprocess.run(["tools/sysroot_of_sources.sh", "libraries", "cc", "ar"], cwd=unpacked, check=True)
        self.assertTrue((bundled / "lib/libz.a").is_file() and (bundled / "lib/libutf8proc.a").is_file())

    def test_an_editable_wheel_leads_to_the_checkout(self):
        with zipfile.ZipFile(self.built("build_editable")) as wheel:
            self.assertEqual(wheel.read("minimind_cpp.pth").decode(), f"{PYTHON}\n")

    def test_a_wheel_names_the_licences_that_it_has(self):
        file = self.built("build_wheel")
        self.assertRegex(file.name, rf"^minimind_cpp-{re.escape(VERSION)}-py3-none-linux_\w+\.whl$")
        with zipfile.ZipFile(file) as wheel:
            info = f"minimind_cpp-{VERSION}.dist-info"
            metadata = wheel.read(f"{info}/METADATA").decode()
            for licence in re.findall(r"^License-File: (.*)$", metadata, re.M):
                self.assertIn(f"{info}/licenses/{licence}", wheel.namelist())
            self.assertIn("Requires-Dist: numpy\n", metadata)
            self.assertTrue(wheel.getinfo("minimind_cpp/minimind").external_attr >> 16 & 0o100)

    def test_sources_without_the_rest_are_named_before_anything_is_built(self):
        alone = self.folder / "tools" / "python"
        alone.mkdir(parents=True)
        for name in ("backend.py", "pyproject.toml"):
            (alone / name).write_bytes((PYTHON / name).read_bytes())
        done = build(self.folder, "prepare_metadata_for_build_wheel('.')", alone)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^\S+/Makefile: does not exist, expected the sources .*; install from a clone")

    def test_missing_tools_are_named(self):
        done = build(self.folder, "build_wheel('.')", PATH="/nowhere")
        self.assertEqual((done.returncode, done.stderr[:16]), (1, "make is missing;"))
        done = build(self.folder, "build_wheel('.')", MAKEFLAGS="CXX=g++-nowhere BUILD=" + str(self.folder / "build"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("missing: g++-nowhere", done.stderr)


class Installed(unittest.TestCase):
    def test_the_version_is_that_of_the_makefile(self):
        self.assertEqual(minimind_cpp.__version__, VERSION)

    def test_the_program_runs(self):
        done = subprocess.run([sys.executable, "-m", "minimind_cpp", "--version"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(VERSION, done.stdout)

    def test_a_command_is_run_from_python(self):
        with tempfile.TemporaryDirectory() as folder:
            requests, results = pathlib.Path(folder, "in.jsonl"), pathlib.Path(folder, "out.jsonl")
            requests.write_text('{"prompt": "春天", "max_tokens": 3, "temperature": 0}\n')
            self.assertEqual(minimind_cpp.run("batch", requests, "-q", "-o", results), "")
            (choice,) = json.loads(results.read_text())["response"]["body"]["choices"]
            ids = Model().tokenizer.encode("春天")  # bos_token is not added
            self.assertEqual(choice["text"], Model().generate(ids, SamplingParams(temperature=0, max_tokens=3)).text)
            with self.assertRaisesRegex(RuntimeError, "/nowhere.jsonl: cannot be"):
                minimind_cpp.run("batch", "/nowhere.jsonl", "-o", results)

    def test_the_program_and_a_model_without_a_path_have_the_poet(self):
        command = [sys.executable, "-m", "minimind_cpp", "generate", "-q", "--greedy", "-n", "8", "-p", "春天"]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(Model().generate("春天", SamplingParams(temperature=0, max_tokens=8)).text, done.stdout)


if __name__ == "__main__":
    unittest.main()
