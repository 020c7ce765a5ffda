"""Tests of the core: what `make core` is made of, and the program that it builds.

MINIMIND_CORE and MINIMIND_PROGRAM name other programs than build/release/core/minimind-core and ./minimind.
"""

import ctypes
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import check_layers

ROOT = pathlib.Path(__file__).resolve().parents[1]
CORE = os.environ.get("MINIMIND_CORE", str(ROOT / "build" / "release" / "core" / "minimind-core"))
PROGRAM = os.environ.get("MINIMIND_PROGRAM", str(ROOT / "minimind"))
GOLDEN = ROOT / "tests" / "golden"
TOKENIZER = ROOT / "tests" / "golden_texts" / "tokenizer.json"  # of these checkpoints
DEMO = ROOT / "weights" / "demo" / "model.pth"

# From a checkpoint to text: all that the program is compiled from, on any machine.
MOST_LINES = 14_000
MOST_BYTES = 2_000_000
ROOTS = ["tools/core/main.cpp", "tools/core/absent.cpp",
         *(f"runtime/kernels/{name}.cpp" for name in ("avx512vnni", "avx512", "avx2", "sse2", "neon"))]
CHECKPOINTS = ["v1-dense", "v1-moe", "v2-early-dense", "v2-dense", "v2-moe", "v3-dense", "v3-moe", "v3-bf16", "v3-fp32",
               "v3-untied", "v3-legacy-pth", "v3-resume", "v3-glu-gelu", "hf-llama", "hf-qwen3-moe", "hf-qwen3-sharded"]
TYPES = ["f32", "f16", "bf16", "q8_0"]


def checkpoint_in(folder, name):
    """Copies a golden checkpoint with the tokenizer to a folder. Returns its file, or its folder if it has a config."""
    target = pathlib.Path(folder) / name
    shutil.copytree(GOLDEN / name, target)
    shutil.copy(TOKENIZER, target)
    file = target / "model.pth"
    return file if file.exists() else target


def run(program, *arguments, **options):
    return subprocess.run([program, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, **options)


class Size(unittest.TestCase):
    def test_is_read_in_a_weekend(self):
        rooms = check_layers.parse_layers((ROOT / "tests" / "layers.txt").read_text(encoding="utf-8"))
        files, includes = check_layers.read_sources(ROOT, rooms)
        core = check_layers.closure_of(ROOTS, files, check_layers.graph_of_units(files, includes))
        self.assertLessEqual(check_layers.line_count(ROOT, core), MOST_LINES)

    def test_is_a_small_program(self):
        self.assertLessEqual(os.path.getsize(CORE), MOST_BYTES)

    def test_is_static(self):
        headers = subprocess.run(["readelf", "--wide", "--program-headers", "--dynamic", CORE], check=True,
                                 capture_output=True, text=True).stdout
        self.assertNotIn("INTERP", headers)
        self.assertNotIn("NEEDED", headers)

    def test_calls_no_streams_or_locales(self):
        objects = list(pathlib.Path(CORE).parent.glob("*/*.o"))
        self.assertGreater(len(objects), 10)
        called = subprocess.run(["nm", "--demangle", "--undefined-only", *objects], check=True, capture_output=True,
                                text=True).stdout
        self.assertEqual([line for line in called.splitlines() if "stream" in line or "std::locale" in line], [])


class Characters(unittest.TestCase):
    def test_have_the_categories_of_utf8proc(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        library = os.path.join(folder, "categories.so")
        subprocess.run([os.environ.get("CXX", "c++"), "-shared", "-fPIC", pathlib.Path(CORE).parent / "categories.cpp",
                        "-o", library], check=True)
        ours, theirs = (ctypes.CDLL(name).utf8proc_category for name in (library, "libutf8proc.so"))
        self.assertEqual([c for c in range(-2, 0x110002) if ours(c) != theirs(c)], [])


class Texts(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def expect_same(self, model, *options, text="ab c", limit=24, threads=1):
        both = [("-p", text), ("-n", limit), ("-t", threads), *options]
        arguments = [argument for option in both for argument in option]
        ours = run(CORE, model, *arguments)
        theirs = run(PROGRAM, "generate", model, *arguments)
        self.assertEqual(ours.returncode, 0, ours.stderr)
        self.assertEqual(theirs.returncode, 0, theirs.stderr)
        self.assertEqual(ours.stdout, theirs.stdout, f"{model} {options}")

    def test_have_the_bytes_of_minimind(self):
        for number, name in enumerate(CHECKPOINTS):
            model = checkpoint_in(self.folder, name)
            self.expect_same(model, ("--seed", number))
            for wanted in TYPES:
                self.expect_same(model, ("--seed", number), ("--type", wanted))

    def test_of_one_safetensors_file_have_the_bytes_of_minimind(self):
        model = checkpoint_in(self.folder, "hf-llama") / "model.safetensors"
        self.expect_same(model, ("--seed", 3))

    def test_of_the_demo_have_the_bytes_of_minimind(self):
        for wanted in TYPES:
            self.expect_same(DEMO, ("--seed", 5), ("--type", wanted), text="床前明月光，", limit=40, threads=2)

    def test_follow_the_options_of_sampling(self):
        for options in ([("--temperature", 0)], [("--top-k", 3), ("--min-p", 0.1), ("--repeat-penalty", 1.3)],
                        [("--temperature", 2), ("--top-p", 0.5), ("--frequency-penalty", 0.8)]):
            self.expect_same(DEMO, ("--seed", 6), *options, text="江上", limit=40)

    def test_need_nothing_but_the_kernel(self):
        model = checkpoint_in(self.folder, "v3-dense")
        shutil.copy(CORE, model.parent / "core")
        as_root = [shutil.which("unshare"), "--map-root-user"] if os.geteuid() else []
        alone = [*as_root, shutil.which("chroot", path="/usr/sbin:/sbin:/usr/bin"), model.parent]
        done = run(*alone, "/core", "/model.pth", "-p", "ab c", "-n", 8, env={})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, run(CORE, model, "-p", "ab c", "-n", 8).stdout)


class Errors(unittest.TestCase):
    def expect_error(self, status, expected, *arguments):
        done = run(CORE, *arguments, text=True)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        self.assertIn(expected, done.stderr)

    def test_name_what_was_found(self):
        self.expect_error(1, "No such file", "missing.pth", "-p", "a")
        self.expect_error(1, "neither a torch.save file (.pth, .pt, .bin) nor safetensors",
                          next((ROOT / "tests" / "golden_gguf").glob("*.gguf")), "-p", "a")
        self.expect_error(1, "no tokenizer.json", GOLDEN / "v3-dense" / "model.pth", "-p", "a")
        self.expect_error(1, "the prompt is empty", DEMO)

    def test_of_usage_have_the_status_2(self):
        for arguments in ([], ["--help"], [DEMO, "-p"], ["-p", "a", DEMO]):
            self.expect_error(2, "expected a model, then options with a value each", *arguments)
        for option in ("-", "top-k", "--"):
            self.expect_error(2, f"unknown option '{option}'", DEMO, option, "1")
        self.expect_error(2, "unknown option '--lora'", DEMO, "--lora", "a.pth")
        self.expect_error(2, "-n is 'x', expected a number", DEMO, "-n", "x")
        self.expect_error(2, "max_tokens is -1, expected 0 to 1073741824", DEMO, "-n", "-1")
        self.expect_error(2, "top_k is 1.5, expected a whole one", DEMO, "--top-k", "1.5")
        self.expect_error(2, "--type is 'q4_0', expected f32, f16, bf16 or q8_0", DEMO, "--type", "q4_0")
        self.expect_error(2, "top_p is 2", DEMO, "--top-p", "2")
        self.expect_error(2, "dry_multiplier is over 0", DEMO, "--dry-multiplier", "1", "-p", "a")


if __name__ == "__main__":
    unittest.main()
