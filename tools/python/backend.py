"""Builds the package for pip, uv and build, which call the functions below: PEP 517 and 660. `make` builds what it has of C++.

A wheel has the library, the program and the bundled poet. An editable one leads to the checkout, whose library and program `make`
keeps up to date. An sdist is the part of the checkout that `make` needs, with the pyproject.toml of its root. That of `make sdist`
also has `libraries`, with the headers and sources of all libraries and their licences, so that it needs only a compiler and make.

BUILD, SYSTEM, MACHINE and STATIC in the environment are those of the Makefile: by them, `make wheels` asks for other systems' wheels.
SDIST_LIBRARIES is the folder of tools/sysroot_of_sources.sh for `make sdist`.
"""

import base64
import hashlib
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile

try:
    import tomllib
except ModuleNotFoundError:  # before Python 3.11
    import tomli as tomllib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PACKAGE = "minimind_cpp"
BUILD = os.environ.get("BUILD", "build/release")
MACHINE = os.environ.get("MACHINE") or sysconfig.get_platform().partition("-")[2]
# Of each system: what pip calls it, and what its library and its program are called.
SYSTEMS = {
    "linux": (f"linux_{MACHINE}", "libminimind.so.*", "minimind"),
    "windows": ("win_amd64", "libminimind-*.dll", "minimind.exe"),
    "macos": (f"macosx_11_0_{MACHINE.replace('aarch64', 'arm64')}", "libminimind.*.dylib", "minimind"),
}
PLATFORM, LIBRARY, PROGRAM = SYSTEMS[os.environ.get("SYSTEM", "linux")]
SDIST_LIBRARIES = os.environ.get("SDIST_LIBRARIES")
BUNDLED = ROOT / "libraries"
SOURCES = ("Makefile", "LICENSE", "pyproject.toml", "runtime", "weights", "tools", "tests/layers.txt")  # of an sdist


# ---- What the front ends call ----


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    folder = pathlib.Path(metadata_directory, f"{name_and_version()}.dist-info")
    folder.mkdir()
    for name, content in metadata_files().items():
        (folder / name).write_text(content, encoding="utf-8")
    return folder.name


def prepare_metadata_for_build_editable(metadata_directory, config_settings=None):
    return prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    build = run_make("lib", "program", *([] if BUNDLED.is_dir() else ["licences"]))
    with Wheel(wheel_directory) as wheel:
        for file in files_below(HERE / PACKAGE):
            wheel.add(f"{PACKAGE}/{file.relative_to(HERE / PACKAGE)}", file.read_bytes())
        (library,) = build.glob(LIBRARY)
        wheel.add(f"{PACKAGE}/{library.name}", stripped(library))
        wheel.add(f"{PACKAGE}/{PROGRAM}", stripped(build / PROGRAM), mode=0o755)
        for file in files_below(ROOT / "weights/demo"):
            wheel.add(f"{PACKAGE}/{file.relative_to(ROOT)}", file.read_bytes())
        for file in (ROOT / "LICENSE", (BUNDLED if BUNDLED.is_dir() else build) / "LICENSES.txt"):
            wheel.add(f"{wheel.info}/licenses/{file.name}", file.read_bytes())
    return wheel.name


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    run_make("lib", "minimind")
    with Wheel(wheel_directory) as wheel:
        wheel.add(f"{PACKAGE}.pth", f"{HERE}\n".encode())
    return wheel.name


def build_sdist(sdist_directory, config_settings=None):
    check_sources()
    top = name_and_version()
    with tarfile.open(pathlib.Path(sdist_directory, f"{top}.tar.gz"), "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for source in SOURCES:
            for file in files_below(ROOT / source):
                archive.add(file, f"{top}/{file.relative_to(ROOT)}", filter=owned_by_nobody)
        for name, file in library_files() if SDIST_LIBRARIES else ():
            archive.add(file.resolve(), f"{top}/{BUNDLED.name}/{name}", filter=owned_by_nobody)
        entry = tarfile.TarInfo(f"{top}/PKG-INFO")
        data = metadata_files()["METADATA"].encode()
        entry.size, entry.mtime = len(data), int((HERE / "pyproject.toml").stat().st_mtime)
        archive.addfile(entry, io.BytesIO(data))
    return f"{top}.tar.gz"


# ---- The parts ----


def check_sources():
    if not (ROOT / "Makefile").is_file():
        raise SystemExit(
            f"{ROOT / 'Makefile'}: does not exist, expected the sources of minimind.cpp around {HERE}; install from a clone, "
            'as in pip install "git+URL", or from an sdist'
        )


def run_make(*targets):
    """Builds the targets and returns the folder that has them. `make` says which packages are missing."""
    check_sources()
    if not sys.platform.startswith("linux"):
        raise SystemExit(
            f"the system is {sys.platform}, expected Linux, where the sources are compiled for every system; "
            "install a wheel instead, which `make wheels` writes there"
        )
    if shutil.which("make") is None:
        raise SystemExit("make is missing; install it with your package manager, on Debian: apt install make")
    commands = [["make", *targets]]
    if BUNDLED.is_dir():
        commands = [["tools/sysroot_of_sources.sh", BUNDLED.name, "cc", "ar"], ["make", f"SYSROOT={BUNDLED.name}", *targets]]
    if any(subprocess.run(command, cwd=ROOT, stdout=sys.stderr).returncode != 0 for command in commands):
        raise SystemExit(f"make {' '.join(targets)} in {ROOT}: failed, see above; nothing was installed")
    return ROOT / BUILD


def library_files():
    """Yields the names in `libraries` and the files: of Boost, the folders from which the sources include something."""
    folder = pathlib.Path(SDIST_LIBRARIES)
    command = ["c++", "-std=c++20", "-I.", "-M", *map(str, (ROOT / "tools/http").glob("*.cpp"))]
    rules = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    boost = folder / "include/boost"
    entries = {boost / name for name in re.findall(r"/include/boost/([^/ \\]+)", rules)} | set(boost.parent.iterdir()) - {boost}
    for entry in sorted(entries):
        for file in [entry] if entry.is_file() else sorted(file for file in entry.rglob("*") if file.is_file()):
            yield file.relative_to(folder), file
    for pattern in ("sources", "LICENSES.txt", "utf8proc-*/*.[ch]", "zlib-*/*.[ch]"):
        for file in sorted(folder.glob(pattern)):
            yield file.relative_to(folder), file


def files_below(path):
    """The file, or those in the folder, without what programs leave there."""
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    return [file for file in files if not any(part == "__pycache__" or part[0] == "." for part in file.relative_to(ROOT).parts)]


def stripped(program):
    if os.environ.get("STATIC"):  # by the linker
        return program.read_bytes()
    with tempfile.NamedTemporaryFile() as file:
        subprocess.run(["strip", "--strip-unneeded", "-o", file.name, str(program)], check=True)
        return pathlib.Path(file.name).read_bytes()


def owned_by_nobody(entry):
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def name_and_version():
    check_sources()
    (line,) = (line for line in (ROOT / "Makefile").read_text(encoding="utf-8").splitlines() if line.startswith("VERSION := "))
    return f"{PACKAGE}-{line.partition(':=')[2].strip()}"


def metadata_files():
    """Those of a .dist-info folder, except RECORD, from pyproject.toml."""
    project = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {project['name']}",
        f"Version: {name_and_version().partition('-')[2]}",
        f"Summary: {project['description']}",
        f"License-Expression: {project['license']}",
        *(f"License-File: {file}" for file in project["license-files"]),
        f"Requires-Python: {project['requires-python']}",
        *(f"Requires-Dist: {package}" for package in project["dependencies"]),
        "Description-Content-Type: text/markdown",
    ]
    readme = (HERE / "README.md").read_text(encoding="utf-8")
    scripts = [f"{name} = {function}" for name, function in project["scripts"].items()]
    return {
        "METADATA": "\n".join(lines) + "\n\n" + readme,
        "entry_points.txt": "\n".join(["[console_scripts]", *scripts]) + "\n",
    }


class Wheel:
    """A wheel that is being written. Equal files give equal bytes. The package is the same for every version of Python 3."""

    def __init__(self, folder):
        tag = f"py3-none-{PLATFORM}"
        self.name = f"{name_and_version()}-{tag}.whl"
        self.info = f"{name_and_version()}.dist-info"
        self.records = []
        self.archive = zipfile.ZipFile(pathlib.Path(folder, self.name), "w", zipfile.ZIP_DEFLATED)
        self.about = f"Wheel-Version: 1.0\nGenerator: {PACKAGE}\nRoot-Is-Purelib: false\nTag: {tag}\n"

    def add(self, name, data, mode=0o644):
        entry = zipfile.ZipInfo(name)
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self.archive.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.records.append(f"{name},sha256={digest},{len(data)}")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            for name, content in {**metadata_files(), "WHEEL": self.about}.items():
                self.add(f"{self.info}/{name}", content.encode())
            record = f"{self.info}/RECORD"
            self.archive.writestr(zipfile.ZipInfo(record), "\n".join([*self.records, f"{record},,", ""]))
        self.archive.close()
