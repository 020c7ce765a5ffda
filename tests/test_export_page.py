"""Tests that `minimind serve --export-page` puts a model into the page in one file as tools/page/bundle.py does."""

import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / 'tools/page'))

import bundle  # noqa: E402

PROGRAM = os.environ.get('MINIMIND_PROGRAM', ROOT / 'minimind')
DEMO = ROOT / 'weights/demo/model.pth'
VERSION = re.search(r'^VERSION := (.*)$', (ROOT / 'Makefile').read_text(encoding='utf-8'), re.M)[1]


def unpack(piece):
    """Returns the bytes of a piece that pack() wrote."""
    _, size, deflated, characters = piece.split(' ')
    values = {character: value for value, character in enumerate(bundle.CHARACTERS)}
    pairs = [values[first] * len(values) + values[second] for first, second in zip(characters[::2], characters[1::2])]
    eights = [sum(pair << (13 * i) for i, pair in enumerate(pairs[at:at + 8])) for at in range(0, len(pairs), 8)]
    stored = b''.join(eight.to_bytes(13, 'little') for eight in eights)
    return zlib.decompress(stored[:int(deflated)]) if int(deflated) else stored[:int(size)]


class ExportPageTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.page = self.folder / 'minimind.html'
        self.out = self.folder / 'mine.html'
        (self.folder / 'old.gguf').write_bytes(random.Random(1).randbytes(900_000))
        self.write_page(VERSION)

    def write_page(self, version):
        model = bundle.pieces(self.folder / 'old.gguf', 'data-model')
        self.page.write_text(f'<head><meta name="generator" content="minimind {version}"></head>诗\n{model}</body>', encoding='utf-8')

    def run_program(self, *arguments, model=DEMO):
        command = [PROGRAM, 'serve', '-q', '-m', model, '--export-page', self.out, '--page', self.page, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    def assert_fails(self, result, message, status=1):
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertIn(message, result.stderr)
        self.assertEqual([path.name for path in self.folder.iterdir() if path.name.startswith(('mine', '.'))], [])

    def test_model_is_that_of_convert(self):
        self.assertEqual(self.run_program('--type', 'q4_0').stderr, '')
        converted = self.folder / 'mine.gguf'
        subprocess.run([PROGRAM, 'convert', DEMO, converted, '--type', 'q4_0', '-q'], check=True)
        page = self.out.read_text(encoding='utf-8')
        pieces = re.findall(r'<script type="text/plain" data-model="mine\.gguf">([^<]*)</script><script>takePiece\(\)</script>\n', page)
        self.assertGreater(len(pieces), 2)
        model = converted.read_bytes()
        self.assertEqual(b''.join(map(unpack, pieces)), model)
        # Both programs deflate the same pieces, into bytes that may differ.
        facts = lambda texts: [(*text.split(' ')[:2], text.split(' ')[2] == '0') for text in texts]
        self.assertEqual(facts(pieces), facts(bundle.pack(model)))
        self.assertTrue(page.startswith('<head><meta') and page.endswith('\n</body>') and '诗\n<script' in page)
        self.assertNotIn('old.gguf', page)

    def test_exported_page_is_a_page_to_export(self):
        self.run_program('--type', 'q4_0')
        first = self.out.read_bytes()
        self.page.write_bytes(first)
        self.assertIn('mine.html: already exists; --force replaces it', self.run_program('--type', 'q4_0').stderr)
        self.assertEqual(self.run_program('--type', 'q4_0', '--force').stderr, '')
        self.assertEqual(self.out.read_bytes(), first)

    def test_what_is_no_page_is_named(self):
        self.write_page('0.0.1')
        self.assert_fails(self.run_program(), f'minimind.html: is of another version than this program, expected {VERSION}')
        self.page.write_bytes(self.page.read_bytes()[:1000])
        self.assert_fails(self.run_program(), 'minimind.html: is not the page in one file, or is truncated, expected minimind.html')
        self.page.unlink()
        self.assert_fails(self.run_program(), 'minimind.html: no such file, expected the page in one file, minimind.html')

    def test_model_without_tokenizer_is_named(self):
        model = ROOT / 'tests/golden/v3-dense/model.pth'
        result = self.run_program(model=model)
        self.assertEqual(result.returncode, 1)
        self.assertIn('tokenizer', result.stderr)
        self.assertFalse(self.out.exists())

    def test_options_without_effect_are_rejected(self):
        for option in (['--port', '80'], ['--temperature', '0.5'], ['--inside'], ['--ctx-size', '9']):
            self.assert_fails(self.run_program(*option), 'options contradict each other', 2)
        alone = subprocess.run([PROGRAM, 'serve', '--page', self.page], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(alone.returncode, 2)
        self.assertIn('--export-page', alone.stderr)


if __name__ == '__main__':
    unittest.main()
