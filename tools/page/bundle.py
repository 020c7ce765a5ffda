#!/usr/bin/env python3
"""Writes the page in one file: the chat page, the engine and a model, so that a browser needs nothing else.

    bundle.py --version VERSION --program PROGRAM.JS --model MODEL.MEMORY --out MINIMIND.HTML --package FOLDER

PROGRAM.JS is emscripten's script; PROGRAM.WASM is next to it. The modules of the page become one script, in which each is a
function that returns what it exports. A policy in the page forbids every request. What the page is made of in bytes is printed.
The folder is the engine alone as a package for npm.
"""

import argparse
import base64
import hashlib
import json
import pathlib
import re
import shutil
import sys
import urllib.parse
import zlib

HERE = pathlib.Path(__file__).resolve().parent
# Of a module that both folders have, the page in one file takes the first.
FOLDERS = [HERE, HERE.parent / 'serve/page']

IMPORT = re.compile(r"^import (?:\{([^}]*)\} from )?'\./([a-z_]+\.js)';\n", re.M)
EXPORT = re.compile(r'^export ((?:async )?function\*?|class|const) ?(\w+)', re.M)

# With the comments that are lines of their own.
INDENT = re.compile(r'^ *(?://.*\n)?', re.M)

# 13 bits are two of these characters, which mean the same in every encoding of a page.
CHARACTERS = [chr(code) for code in range(33, 127) if chr(code) not in '&<>']

# Bytes of the program and of the model that come before the next script: the worker unpacks them while the browser reads on.
PIECE = 13 << 14
# What a deflated piece has at most of its bytes: quantized weights would gain 4%, and inflating them takes longer than reading those.
WORTH = 0.9
WORTH_OF_MEMORY = 0.97  # else the page would be too large
TAKE_PIECE = 'takePiece()'


class BundleError(Exception):
    """Names the file and what is wrong."""


def find_module(name):
    for folder in FOLDERS:
        if (folder / name).exists():
            return folder / name
    raise BundleError(f'{name}: is in none of {", ".join(map(str, FOLDERS))}')


def variable_of(name):
    return '$' + name.removesuffix('.js')


def bundle_modules(entry, *done):
    """Returns the script of a module and of all that it imports, in the order in which they run, but for what is done."""
    parts, done, running = [], set(done), []

    def add(name):
        if name in done:
            return
        if name in running:
            raise BundleError(f'{name}: imports itself, through {", ".join(running)}')
        running.append(name)
        text = find_module(name).read_text(encoding='utf-8')
        for match in IMPORT.finditer(text):
            add(match[2])
        exports = [match[2] for match in EXPORT.finditer(text)]
        body = IMPORT.sub(lambda match: f'const {{{match[1]}}} = {variable_of(match[2])};\n' if match[1] else '', text)
        body = EXPORT.sub(lambda match: match[0].removeprefix('export '), body)
        body = INDENT.sub('', body)
        if re.search(r'^(import|export)\b', body, re.M):
            raise BundleError(f'{name}: has an import or export of another form than this program knows')
        parts.append(f'const {variable_of(name)} = (() => {{\n{body}\nreturn {{{", ".join(exports)}}};\n}})();\n')
        running.pop()
        done.add(name)

    add(entry)
    return "'use strict';\n" + ''.join(parts)


def pack(data, worth=WORTH):
    """Returns the pieces of these bytes as texts, which packed.js unpacks. Those that gain little are not deflated."""
    pairs = [first + second for first in CHARACTERS for second in CHARACTERS]
    texts = []
    for start in range(0, len(data), PIECE):
        piece = data[start:start + PIECE]
        deflated = zlib.compress(piece, 9)
        is_deflated = len(deflated) < worth * len(piece)
        stored = deflated if is_deflated else piece
        text = []
        for group in range(0, len(stored), 13):
            bits = int.from_bytes(stored[group:group + 13], 'little')
            text += [pairs[bits >> shift & 0x1FFF] for shift in range(0, 104, 13)]
        texts.append(f'{len(data)} {len(piece)} {len(deflated) if is_deflated else 0} ' + ''.join(text[:-(-8 * len(stored) // 13)]))
    return texts


def data_uri(path, kind):
    return f'data:{kind},' + urllib.parse.quote(path.read_text(encoding='utf-8'))


def hash_of(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def script_text(text):
    """What a script may have in HTML: nothing that ends it."""
    return text.replace('</script', '<\\/script').replace('<!--', '<\\!--')


def policy(scripts, style):
    return ("default-src 'none'; "
            f"script-src {' '.join(map(hash_of, scripts))} 'wasm-unsafe-eval'; worker-src blob:; style-src {hash_of(style)}; img-src data:; "
            "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types minimind-worker")


def replace_once(text, old, new):
    if text.count(old) != 1:
        raise BundleError(f'index.html: has {old!r} {text.count(old)} times, expected once')
    return text.replace(old, new)


def pieces(path, attribute, worth=WORTH):
    """Returns the scripts of a packed file."""
    return ''.join(f'<script type="text/plain" {attribute}="{path.name}">{text}</script><script>{TAKE_PIECE}</script>\n'
                   for text in pack(path.read_bytes(), worth))


def write_page(program, model, version):
    serve = FOLDERS[1]
    launch = script_text(bundle_modules('launch.js'))
    script = script_text(f"startPage(() => {{\n{bundle_modules('start.js', 'launch.js')}}});")
    style = (serve / 'page.css').read_text(encoding='utf-8') + (HERE / 'page.css').read_text(encoding='utf-8')
    worker = script_text(program.read_text(encoding='utf-8') + bundle_modules('worker.js'))
    icon = data_uri(serve / 'icon.svg', 'image/svg+xml')
    page = (serve / 'index.html').read_text(encoding='utf-8')
    page = replace_once(page, '<meta name="viewport"',
                        f'<meta http-equiv="Content-Security-Policy" content="{policy([launch, TAKE_PIECE, script], style)}">\n'
                        f'<meta name="generator" content="minimind {version}">\n<script type="text/plain" id="worker">{worker}</script>\n'
                        f'<script>{launch}</script>\n<meta name="viewport"')
    page = replace_once(page, '<link rel="icon" href="icon.svg" type="image/svg+xml">', f'<link rel="icon" href="{icon}">')
    page = replace_once(page, '<link rel="stylesheet" href="page.css">', f'<style>{style}</style>')
    page = replace_once(page, '<script type="module" src="page.js"></script>\n', '')
    page = page.replace('src="icon.svg"', f'src="{icon}"')
    packed = {'program': pieces(program.with_suffix('.wasm'), 'data-program'), 'model': pieces(model, 'data-model', WORTH_OF_MEMORY)}
    page = replace_once(page, '</body>', f'{packed["program"]}<script>{script}</script>\n{packed["model"]}</body>')
    sizes = {'worker': worker, **packed, 'script': script, 'style': style}
    return page, {name: len(text.encode()) for name, text in sizes.items()}


def write_package(folder, program, version):
    """Writes the engine as a package for npm."""
    shutil.copytree(HERE / 'npm', folder, dirs_exist_ok=True)
    shutil.copy(program.with_suffix('.wasm'), folder / 'minimind.wasm')
    (folder / 'minimind.mjs').write_text(
        # Under node, emscripten's script expects these; it reads no file next to it.
        "const require = globalThis.process?.versions?.node && (await import('node:module')).createRequire(import.meta.url), __dirname = '.';\n"
        f"{program.read_text(encoding='utf-8')}{bundle_modules('library.js')}"
        'export const {load} = $library;\nexport const {EngineError} = $engine;\n', encoding='utf-8')
    facts = {
        'name': 'minimind', 'version': version, 'description': 'Runs MiniMind checkpoints in a page or under node',
        'license': 'Apache-2.0', 'type': 'module', 'exports': {'.': {'types': './minimind.d.ts', 'default': './minimind.mjs'},
                                                               './minimind.wasm': './minimind.wasm'},
        'engines': {'node': '>=20'},
    }
    (folder / 'package.json').write_text(json.dumps(facts, indent=2) + '\n', encoding='utf-8')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--version', required=True)
    parser.add_argument('--program', type=pathlib.Path, required=True)
    parser.add_argument('--model', type=pathlib.Path, required=True)
    parser.add_argument('--out', type=pathlib.Path, required=True)
    parser.add_argument('--package', type=pathlib.Path, required=True)
    options = parser.parse_args()
    try:
        page, sizes = write_page(options.program, options.model, options.version)
        write_package(options.package, options.program, options.version)
    except BundleError as error:
        print(f'bundle.py: {error}', file=sys.stderr)
        return 1
    options.out.write_text(page, encoding='utf-8')
    print(f'{options.out}: {len(page.encode())} bytes: ' + ', '.join(f'{name} {size}' for name, size in sizes.items()))
    return 0


if __name__ == '__main__':
    sys.exit(main())
