#!/usr/bin/env python3
"""wheels.py FOLDER: checks the packages for Python that `make wheels` wrote there: their names and contents, that pip takes them for
their systems, and that auditwheel finds what their names say. Those of Linux are installed into new environments, of this Python and, for
64-bit ARM, of Debian's, which runs under qemu-user. What those of Windows and macOS have is run and checked by windows.py and macos.py.
"""

import base64
import csv
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

FOLDER = pathlib.Path(sys.argv.pop(1)).resolve()
ROOT = pathlib.Path(__file__).resolve().parent.parent
PYTHON = ROOT / 'tools/python/minimind_cpp'
TOOLS = ROOT / 'build/wheel-venv/bin'
ARM64 = ROOT / 'build/for/python-arm64'
# Of each system: sys.platform, its library, its program, and how both begin, with the processor.
SYSTEMS = {
    r'manylinux2014_x86_64\.manylinux_2_17_x86_64': ('linux', 'libminimind.so.1', 'minimind', rb'\x7fELF.{14}\x3e\0'),
    r'manylinux2014_aarch64\.manylinux_2_17_aarch64': ('linux', 'libminimind.so.1', 'minimind', rb'\x7fELF.{14}\xb7\0'),
    r'win_amd64': ('win32', 'libminimind-1.dll', 'minimind.exe', rb'MZ.*PE\0\0\x64\x86'),
    r'macosx_11_0_arm64': ('darwin', 'libminimind.1.dylib', 'minimind', rb'\xcf\xfa\xed\xfe\x0c\0\0\x01'),
    r'macosx_11_0_x86_64': ('darwin', 'libminimind.1.dylib', 'minimind', rb'\xcf\xfa\xed\xfe\x07\0\0\x01'),
}
# As if it were another system's: says which library it would load.
FIND_LIBRARY = """
import ctypes, sys
sys.platform = sys.argv[1]
ctypes.CDLL = lambda path: sys.exit(print(path))
import minimind_cpp
"""
WRITE_POEM = """
import platform
from minimind_cpp import Model, SamplingParams
print(platform.machine(), Model().generate("床前明月光，", SamplingParams(temperature=0, max_tokens=16)).text, end="")
"""


def output_of(*command, **options):
    return subprocess.run([*map(str, command)], check=True, stdout=subprocess.PIPE, text=True, **options).stdout


class WheelsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.wheels = {wheel.stem.rsplit('-', 1)[1]: wheel for wheel in FOLDER.glob('*.whl')}

    def each_wheel(self):
        """Yields the platform in its name, the file, and what SYSTEMS says of it."""
        for platform, wheel in self.wheels.items():
            [facts] = [facts for pattern, facts in SYSTEMS.items() if re.fullmatch(pattern, platform)]
            with self.subTest(platform):
                yield platform, wheel, facts

    def test_there_is_one_for_each_system(self):
        for pattern in SYSTEMS:
            self.assertEqual(len([name for name in self.wheels if re.fullmatch(pattern, name)]), 1, pattern)
        self.assertEqual(len(self.wheels), len(SYSTEMS))

    def test_has_the_package_with_the_library_and_the_program_of_its_system(self):
        modules = {f'minimind_cpp/{file.name}': file.read_bytes() for file in PYTHON.iterdir() if file.is_file()}
        for platform, wheel, (_, library, program, start) in self.each_wheel():
            with zipfile.ZipFile(wheel) as archive:
                names = set(archive.namelist())
                for name, content in modules.items():
                    self.assertEqual(archive.read(name), content, name)
                for name in (library, program):
                    self.assertRegex(archive.read(f'minimind_cpp/{name}')[:512], re.compile(start, re.DOTALL), name)
                self.assertTrue(archive.getinfo(f'minimind_cpp/{program}').external_attr >> 16 & 0o100)
                self.assertIn('minimind_cpp/weights/demo/model.pth', names)
                [about] = [archive.read(name).decode() for name in names if name.endswith('.dist-info/WHEEL')]
                tags = [f'py3-none-{tag}' for tag in platform.split('.')]
                self.assertCountEqual(re.findall(r'^Tag: (.*)$', about, re.MULTILINE), tags)
                self.assertIn('Root-Is-Purelib: false', about)

    def test_its_record_has_each_file(self):
        for _, wheel, _ in self.each_wheel():
            with zipfile.ZipFile(wheel) as archive:
                files = {name for name in archive.namelist() if not name.endswith('/')}
                [record] = [name for name in files if name.endswith('.dist-info/RECORD')]
                rows = list(csv.reader(archive.read(record).decode().splitlines()))
                self.assertEqual({name for name, _, _ in rows}, files)
                for name, stated, size in rows:
                    content = archive.read(name)
                    found = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b'=').decode()
                    if name != record:
                        self.assertEqual((stated, size), (f'sha256={found}', str(len(content))), name)

    def test_pip_installs_it_and_python_finds_its_library(self):
        for platform, wheel, (system, library, _, _) in self.each_wheel():
            later = re.sub('macosx_11_0', 'macosx_14_0', platform.partition('.')[0])
            target = self.folder / platform
            output_of(TOOLS / 'pip', 'install', '-q', '--no-deps', '--no-compile', '--only-binary=:all:', '--platform', later,
                      '--target', target, wheel)
            environment = {**os.environ, 'PYTHONPATH': str(target)}
            environment.pop('MINIMIND_LIBRARY', None)
            found = output_of(sys.executable, '-c', FIND_LIBRARY, system, env=environment).strip()
            self.assertEqual(pathlib.Path(found), target / 'minimind_cpp' / library)

    def test_auditwheel_finds_what_the_name_says(self):
        for platform, wheel, (system, *_) in self.each_wheel():
            if system == 'linux':
                self.assertIn(f'"{platform.partition(".")[2]}"', ' '.join(output_of(TOOLS / 'auditwheel', 'show', wheel).split()))

    def assert_writes_the_poem(self, machine, environment, run=()):
        arguments = ['generate', '-q', '--greedy', '-n', '16', '-p', '床前明月光，']
        poem = output_of(ROOT / 'minimind', *arguments)
        self.assertEqual(output_of(*run, environment / 'bin/python', '-c', WRITE_POEM), f'{machine} {poem}')
        # The poet within the program has the weights of the file that `make release` writes.
        [program] = environment.glob('lib/python3*/site-packages/minimind_cpp/minimind')
        within = output_of(ROOT / 'minimind', *arguments, '-m', ROOT / 'build/for/minimind-poet.gguf')
        self.assertEqual(output_of(*run[:1], program, *arguments), within)

    def test_x86_64_writes_the_poem_in_a_new_environment(self):
        [wheel] = [wheel for name, wheel in self.wheels.items() if name.startswith('manylinux') and name.endswith('x86_64')]
        environment = self.folder / 'environment'
        output_of(sys.executable, '-m', 'venv', environment)
        output_of(environment / 'bin/pip', 'install', '-q', wheel)
        self.assert_writes_the_poem('x86_64', environment)

    def test_64_bit_arm_writes_the_poem_in_a_new_environment(self):
        [wheel] = [wheel for name, wheel in self.wheels.items() if name.endswith('aarch64')]
        root, environment = ARM64 / 'root', self.folder / 'environment-arm64'
        subprocess.run([ROOT / 'tests/python_arm64.sh', ARM64, TOOLS / 'pip'], check=True)
        emulated = ['qemu-aarch64', '-L', root]
        output_of(*emulated, *root.glob('usr/bin/python3.[0-9]*[0-9]'), '-m', 'venv', '--without-pip', environment)
        [pip] = root.glob('usr/share/python-wheels/pip-*.whl')
        output_of(*emulated, environment / 'bin/python', '-m', 'pip', 'install', '-q', '--no-index', '--find-links', ARM64 / 'wheels',
                  wheel, env={**os.environ, 'PYTHONPATH': str(pip)})
        self.assert_writes_the_poem('aarch64', environment, emulated)


if __name__ == '__main__':
    unittest.main()
