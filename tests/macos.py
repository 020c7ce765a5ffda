#!/usr/bin/env python3
"""macos.py FILE LIBSYSTEM.TBD: checks the program for macOS, or the library in a package for Python, which nothing on this machine
can run: that a loader of macOS 11 on the processor in its path takes it, that the system has what it asks for, as the list of zig
names it, that the library gives what its header declares, and that its signature is right. Only Apple's processors ask for one.

The list is of a later system: it does not show that a function came after macOS 11.
"""

import hashlib
import pathlib
import re
import struct
import sys
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILE, SYSTEM = map(pathlib.Path, sys.argv[1:3])
del sys.argv[1:3]
IS_LIBRARY = FILE.suffix == '.whl'
PROCESSORS = {'aarch64': 0x0100000C, 'arm64': 0x0100000C, 'x86_64': 0x01000007}
PROCESSOR = re.search('|'.join(PROCESSORS), str(FILE))[0]
PROGRAM_TYPE, LIBRARY_TYPE, RANDOM_ADDRESS = 2, 6, 0x200000
SYMBOLS, LIBRARIES, NAME, LIBRARY_LOADER, ENTRY, SIGNATURE, VERSION = 0x2, {0xC, 0x80000018, 0x8000001F}, 0xD, 0xE, 0x80000028, 0x1D, 0x32
SIGNED, DIRECTORY, WITHOUT_CERTIFICATE = 0xFADE0CC0, 0xFADE0C02, 2


class MacosTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.bytes = zipfile.ZipFile(FILE).read('minimind_cpp/libminimind.1.dylib') if IS_LIBRARY else FILE.read_bytes()
        cls.header = struct.unpack_from('<8I', cls.bytes)
        cls.commands, at = {}, 32
        for _ in range(cls.header[4]):
            kind, size = struct.unpack_from('<2I', cls.bytes, at)
            cls.commands.setdefault(kind, []).append(cls.bytes[at : at + size])
            at += size

    def symbols(self):
        """Yields each that is external: its name, and whether it is in this file."""
        offset, count, strings, _ = struct.unpack_from('<4I', self.commands[SYMBOLS][0], 8)
        for i in range(count):
            name, kind, _, _, _ = struct.unpack_from('<IBBHQ', self.bytes, offset + 16 * i)
            if kind & 0xF1 == 1:  # neither for debuggers nor for this file alone
                yield self.bytes[strings + name : self.bytes.index(b'\0', strings + name)].decode(), kind & 0xE != 0

    @unittest.skipUnless(IS_LIBRARY, 'is a program')
    def test_is_a_library_for_its_processor_that_gives_what_its_header_declares(self):
        magic, processor, _, kind, *_ = self.header
        self.assertEqual((magic, processor, kind), (0xFEEDFACF, PROCESSORS[PROCESSOR], LIBRARY_TYPE))
        self.assertEqual(self.commands[NAME][0][24:].rstrip(b'\0'), b'@rpath/libminimind.1.dylib')
        header = (ROOT / 'runtime/api/minimind.h').read_text()
        declared = re.findall(r'^MINIMIND_API .*\b(minimind_\w+)\(', header, re.MULTILINE)
        # zig's linker takes no list of them: it shows C++'s own, too, such as the operator new, and names of its own.
        given = [name for name, is_here in self.symbols() if is_here and not re.match('__Z|___dso_handle|__mh_', name)]
        self.assertEqual(sorted(given), sorted(f'_{name}' for name in declared))

    @unittest.skipIf(IS_LIBRARY, 'is a library')
    def test_is_a_program_for_its_processor_at_random_addresses(self):
        magic, processor, _, kind, *_, flags, _ = self.header
        self.assertEqual((magic, processor, kind), (0xFEEDFACF, PROCESSORS[PROCESSOR], PROGRAM_TYPE))
        self.assertTrue(flags & RANDOM_ADDRESS)
        self.assertIn(b'/usr/lib/dyld\0', self.commands[LIBRARY_LOADER][0])
        self.assertIn(ENTRY, self.commands)

    def test_runs_from_macos_11(self):
        platform, oldest = struct.unpack_from('<2I', self.commands[VERSION][0], 8)
        self.assertEqual((platform, oldest), (1, 11 << 16))

    def test_needs_only_the_library_of_the_system(self):
        names = [command[24:].split(b'\0')[0] for kind in LIBRARIES for command in self.commands.get(kind, [])]
        self.assertEqual(names, [b'/usr/lib/libSystem.B.dylib'])

    def test_the_system_has_each_symbol(self):
        has = set(re.findall(r"[\w$.]+", SYSTEM.read_text()))
        undefined = {name for name, is_here in self.symbols() if not is_here}
        self.assertGreater(len(undefined), 50)
        self.assertEqual(undefined - has, set())

    def test_its_threads_have_a_stack_of_a_stated_size(self):
        self.assertIn(('_pthread_attr_setstacksize', False), self.symbols())

    @unittest.skipUnless(IS_LIBRARY, 'is a program')
    def test_its_objects_are_not_destroyed_while_threads_may_call_it(self):
        self.assertNotIn('___cxa_atexit', [name for name, _ in self.symbols()])

    @unittest.skipIf(PROCESSOR == 'x86_64', 'needs no signature')
    def test_is_signed_without_a_certificate(self):
        at, size = struct.unpack_from('<2I', self.commands[SIGNATURE][0], 8)
        magic, _, count = struct.unpack_from('>3I', self.bytes, at)
        self.assertEqual((magic, at + size), (SIGNED, len(self.bytes)))
        starts = [at + struct.unpack_from('>2I', self.bytes, at + 12 + 8 * i)[1] for i in range(count)]
        [directory] = [start for start in starts if struct.unpack_from('>I', self.bytes, start)[0] == DIRECTORY]
        flags, hashes, _, _, pages, limit = struct.unpack_from('>6I', self.bytes, directory + 12)
        hash_size, hash_type, _, page_bits = struct.unpack_from('4B', self.bytes, directory + 36)
        self.assertTrue(flags & WITHOUT_CERTIFICATE)
        self.assertEqual((limit, hash_size, hash_type), (at, 32, 2))
        page = 1 << page_bits
        self.assertEqual(pages, -(-limit // page))
        for i in range(pages):
            expected = self.bytes[directory + hashes + 32 * i :][:32]
            self.assertEqual(hashlib.sha256(self.bytes[page * i : min(page * (i + 1), limit)]).digest(), expected)


if __name__ == '__main__':
    unittest.main()
