"""Tries clients with `./minimind serve` and the bundled model: `make test-clients`, or `python3 run.py NAME...` for some of them.

Each line of versions.txt has an environment of its own in build/clients, which is made once for these versions. When all clients
were tried, their matrix is written into tools/serve/API.md. MINIMIND_PROGRAM names another program than ./minimind.

A feature that fails by the fault of the client has an explanation in NAME_client.py, which is written below the matrix. The status
is 0 if all others pass, no explained one does, and at least 98 % of all pass.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from features import FEATURES  # noqa: E402
from test_many_clients import ROOT, Server  # noqa: E402

PAGE = ROOT / 'tools' / 'serve' / 'API.md'
BUILD = ROOT / 'build' / 'clients'
SECONDS_TO_INSTALL = 600
SECONDS_TO_TRY = 300
LEAST_SHARE = 0.98
LONGEST_ERROR = 600
# What packages would ask of others than the server.
QUIET = {'LITELLM_LOCAL_MODEL_COST_MAP': 'True', 'OPENAI_AGENTS_DISABLE_TRACING': '1', 'HF_HUB_OFFLINE': '1',
         'HF_DATASETS_OFFLINE': '1', 'PYTHONWARNINGS': 'ignore', 'OPENAI_API_KEY': 'none', 'DO_NOT_TRACK': '1'}
WORDS = {
    'client': ('client', '客户端'), 'passed': ('{} of {} features work.', '共 {1} 项功能，{0} 项可用。'),
    'not installed': ('could not be installed', '无法安装'), 'fails': ('{}, {}: {}', '{}，{}：{}'),
}


def read_versions():
    """The packages of each environment."""
    lines = (line.split(':', 1) for line in (HERE / 'versions.txt').read_text().splitlines() if line and not line.startswith('#'))
    return {name: packages.split() for name, packages in lines}


def install(name, packages):
    """None when the environment has the packages, else the end of what pip printed."""
    folder = BUILD / name
    record = folder / 'installed.txt'
    if record.exists() and record.read_text().split() == packages:
        return None
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, '-m', 'venv', folder], check=True)
    try:
        done = subprocess.run([folder / 'bin' / 'pip', 'install', '-q', *packages], timeout=SECONDS_TO_INSTALL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except subprocess.TimeoutExpired:
        return f'pip took over {SECONDS_TO_INSTALL} s'
    if done.returncode != 0:
        return done.stdout.strip().splitlines()[-1]
    record.write_text(' '.join(packages))
    return None


def try_client(name, address):
    """The rows of the client, or one row without results whose `explained` is the reason."""
    results, log = BUILD / f'{name}.json', BUILD / f'{name}.log'
    results.unlink(missing_ok=True)
    with open(log, 'wb') as output:
        try:
            subprocess.run([BUILD / name / 'bin' / 'python', HERE / f'{name.replace("-", "_")}_client.py', results], cwd=BUILD,
                           env={**os.environ, **QUIET, 'MINIMIND_SERVER': address}, stdout=output, stderr=subprocess.STDOUT,
                           timeout=SECONDS_TO_TRY)
        except subprocess.TimeoutExpired:
            raise SystemExit(f'{name} took over {SECONDS_TO_TRY} s: {log} has what it printed') from None
    if not results.exists():
        raise SystemExit(f'{name} ended without results: {log} has what it printed')
    return json.loads(results.read_text())


def start_server():
    server = Server('--parallel', '4')
    log = server.process.stderr
    os.set_blocking(log.fileno(), True)
    # So that the pipe never fills.
    threading.Thread(target=lambda: (BUILD / 'server.log').write_bytes(log.read()), daemon=True).start()
    return server


def matrix(rows, language):
    """The table in the language, 0 for English and 1 for Chinese, with what fails below."""
    headings = [WORDS['client'][language], *(feature[language] for feature in FEATURES.values())]
    lines = ['| ' + ' | '.join(headings) + ' |', '|---' * len(headings) + '|']
    for row in rows:
        if row['results'] is None:
            lines.append(f'| {label(row)}: {WORDS["not installed"][language]} |' + ' |' * len(FEATURES))
            continue
        cells = ('' if feature not in row['results'] else '✗' if row['results'][feature] else '✓' for feature in FEATURES)
        lines.append(f'| {label(row)} | ' + ' | '.join(cells) + ' |')
    passed = [error is None for row in rows for error in (row['results'] or {}).values()]
    lines += ['', WORDS['passed'][language].format(sum(passed), len(passed))]
    failed = [(row, feature) for row in rows for feature, error in (row['results'] or {}).items() if error]
    if failed:
        lines.append('')
    for row, feature in failed:
        why = one_line(row['explained'].get(feature, [row['results'][feature]] * 2)[language])
        lines.append('- ' + WORDS['fails'][language].format(label(row), FEATURES[feature][language], why))
    return '\n'.join(lines) + '\n'


def one_line(error):
    return re.sub(r'\s+', ' ', error)[:LONGEST_ERROR]


def label(row):
    package = next(one for one in row['packages'] if one.startswith(row['package']))
    name, version = re.fullmatch(r'([\w-]+)(?:\[\w+\])?==(\S+)', package).groups()
    return f'`{name}` {version} {row["title"]}'.strip()


def write_page(rows):
    text = PAGE.read_text(encoding='utf-8')
    for language, mark in enumerate(('clients', '客户端')):
        start, end = f'<!--{mark}-->\n', f'<!--/{mark}-->\n'
        before, rest = text.split(start)
        text = before + start + matrix(rows, language) + end + rest.split(end)[1]
    PAGE.write_text(text, encoding='utf-8')


def faults(rows):
    """What must not be, a line for each."""
    for row in rows:
        for feature, error in (row['results'] or {}).items():
            if error and feature not in row['explained']:
                yield f'{label(row)}: {feature} fails: {error}'
            if error is None and feature in row['explained']:
                yield f'{label(row)}: {feature} passes, expected to fail; remove its explanation'
    passed = [error is None for row in rows for error in (row['results'] or {}).values()]
    if sum(passed) < LEAST_SHARE * len(passed):
        yield f'{sum(passed)} of {len(passed)} features work, expected at least {LEAST_SHARE:.0%}'


def main(names):
    versions = read_versions()
    unknown = [name for name in names if name not in versions]
    if unknown:
        raise SystemExit(f'there is no client {unknown[0]}, expected some of {" ".join(versions)}')
    BUILD.mkdir(parents=True, exist_ok=True)
    server = start_server()
    rows = []
    try:
        for name in names or versions:
            failed = install(name, versions[name])
            if failed:
                print(f'{name}: {failed}', flush=True)
                tried = [{'title': '', 'package': '', 'results': None, 'explained': {}}]
            else:
                tried = try_client(name, f'http://127.0.0.1:{server.port}')
            rows += [{**row, 'packages': versions[name]} for row in tried]
            print(f'{name}: tried', flush=True)
    finally:
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(timeout=60)
    print(matrix(rows, 0))
    found = list(faults(rows))
    if not names:
        write_page(rows)
    for fault in found:
        print(one_line(fault))
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
