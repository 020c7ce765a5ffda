#!/usr/bin/env python3
"""android.py FILE: runs the program for Android under qemu-user, on a processor without the dot product and on one with all that qemu
has. Android 8 and later end an app's program that makes a system call outside of a list: every call that is seen here must be in
that of Android 8, the shortest one.
"""

import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
ROOT = pathlib.Path(__file__).resolve().parent.parent
NATIVE = ROOT / 'minimind'

# Those that the program makes, of bionic's libc/SYSCALLS.TXT and SECCOMP_WHITELIST.TXT without SECCOMP_BLACKLIST.TXT, in the branch
# oreo-release: https://android.googlesource.com/platform/bionic
ALLOWED = set("""
    accept4 bind clock_gettime clone close epoll_create1 epoll_ctl epoll_pwait eventfd2 exit exit_group fcntl flock fstat
    fsync futex getcpu getcwd getdents64 getpid getpriority getsockname gettid ioctl listen lseek madvise mmap mprotect mremap munmap
    nanosleep newfstatat openat pipe2 ppoll prctl pread64 prlimit64 pwrite64 read readlinkat readv recvfrom renameat rt_sigaction
    rt_sigprocmask rt_sigreturn sched_getaffinity sched_setaffinity sendto set_tid_address setpriority setsockopt shutdown socket
    socketpair uname unlinkat write writev
    """.split())


def emulated(processor, calls, *arguments):
    """Returns a command, which writes its system calls into a file."""
    return ['qemu-aarch64', '-cpu', processor, '-strace', '-D', calls.name, PROGRAM, *arguments]


def run(processor, *arguments, **options):
    """Returns what the program writes, and the names of its system calls."""
    with tempfile.NamedTemporaryFile('r', prefix='android-') as calls:
        result = subprocess.run(emulated(processor, calls, *arguments), capture_output=True, timeout=300, cwd=ROOT, **options)
        return result, names_of(calls)


def names_of(calls):
    return set(re.findall(r'^\d+ (\w+)\(', calls.read(), re.MULTILINE))


class AndroidTest(unittest.TestCase):
    processors = ('cortex-a72', 'max')

    def check(self, names):
        self.assertIn('mmap', names)
        self.assertEqual(names - ALLOWED, set())

    def test_is_static(self):
        listed = subprocess.run(['readelf', '-ldW', PROGRAM], capture_output=True, text=True, check=True).stdout
        self.assertNotIn('INTERP', listed)
        self.assertNotIn('NEEDED', listed)
        self.assertIn('GNU_RELRO', listed)

    def test_writes_what_this_machines_program_writes(self):
        for arguments in (
            ['generate', '-q', '--greedy', '-n', '16', '-p', '床前明月光，'],
            ['generate', '-q', '--greedy', '-n', '24', '--tokens', '5,6,7', '-m', 'tests/golden/v3-moe/model.pth'],
        ):
            poet = [] if '-m' in arguments else ['-m', 'build/for/minimind-poet.gguf']
            expected = subprocess.run([NATIVE, *arguments, *poet], capture_output=True, check=True, cwd=ROOT).stdout
            for processor in self.processors:
                with self.subTest(processor=processor, arguments=arguments):
                    result, names = run(processor, *arguments)
                    self.assertEqual((result.returncode, result.stdout), (0, expected), result.stderr)
                    self.check(names)

    def test_converts_to_the_same_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, processor in (('native', None), *((p, p) for p in self.processors)):
                target = pathlib.Path(folder, name) / 'poet.gguf'
                target.parent.mkdir()
                arguments = ['convert', 'weights/demo/model.pth', target, '--type', 'q4_0', '-q']
                if processor is None:
                    subprocess.run([NATIVE, *arguments], check=True, cwd=ROOT)
                else:
                    result, names = run(processor, *arguments)
                    self.assertEqual(result.returncode, 0, result.stderr)
                    self.check(names)
                    self.assertEqual(target.read_bytes(), pathlib.Path(folder, 'native', 'poet.gguf').read_bytes())

    def test_other_commands_make_no_other_calls(self):
        for arguments in (
            ['inspect', 'weights/demo/model.pth'],
            ['bench', '-p', '16', '-n', '8'],
            ['perplexity', '-f', 'tests/golden/README.md'],
            ['chat', '-q', '-n', '8', '-p', '写一首诗'],
        ):
            with self.subTest(arguments=arguments):
                result, names = run('max', *arguments, stdin=subprocess.DEVNULL)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.check(names)

    def test_serves_and_ends_when_asked(self):
        with tempfile.NamedTemporaryFile('r', prefix='android-') as calls:
            command = emulated('max', calls, 'serve', '--port', '0', '--lang', 'en')
            server = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, cwd=ROOT)
            address, lines = None, []
            while address is None:
                lines.append(server.stderr.readline())
                self.assertNotEqual(lines[-1], '', ''.join(lines))
                address = re.search(r'http://[\d.]+:\d+', lines[-1])
            body = {'messages': [{'role': 'user', 'content': '写一首诗'}], 'max_tokens': 8}
            request = urllib.request.Request(
                address[0] + '/v1/chat/completions', json.dumps(body).encode(), {'Content-Type': 'application/json'}
            )
            with urllib.request.urlopen(request, timeout=120) as answer:
                self.assertEqual(json.load(answer)['usage']['completion_tokens'], 8)
            server.send_signal(signal.SIGTERM)
            _, rest = server.communicate(timeout=60)
            self.assertEqual(server.returncode, 0, rest)
            self.assertIn('not confined', ''.join(lines) + rest)
            self.check(names_of(calls))


if __name__ == '__main__':
    unittest.main()
