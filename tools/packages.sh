#!/bin/sh
# packages.sh install|check COMPILER PACKAGE...
#
# Finds out whether the compiler and these Debian packages are missing, by what the compiler and the shell find rather than by a list
# of installed packages: a library may come from another distribution or be compiled by hand. `install` installs them with apt;
# without apt, and with `check`, it names them as their authors do and fails.
set -eu

action=$1
compiler=$2
shift 2

# Each line: the package, its authors' name for it without spaces, and the header, command or module that shows that it is installed.
known_packages="
libboost-dev Boost header boost/version.hpp
libcli11-dev CLI11 header CLI/CLI.hpp
libfmt-dev fmt header fmt/core.h
libgtest-dev GoogleTest header gtest/gtest.h
libutf8proc-dev utf8proc header utf8proc.h
libxsimd-dev xsimd header xsimd/xsimd.hpp
nlohmann-json3-dev nlohmann-json header nlohmann/json.hpp
zlib1g-dev zlib header zlib.h
g++-aarch64-linux-gnu GCC-for-64-bit-ARM command aarch64-linux-gnu-g++
qemu-user qemu-user command qemu-aarch64
g++-mingw-w64-x86-64-posix mingw-w64-with-POSIX-threads command x86_64-w64-mingw32-g++-posix
wine Wine command wine
binutils-aarch64-linux-gnu binutils-for-64-bit-ARM command aarch64-linux-gnu-objdump
chromium Chromium command chromium
chromium-driver ChromeDriver command chromedriver
clang-format clang-format command clang-format
clang-tidy clang-tidy command clang-tidy
debhelper debhelper command dh
debootstrap debootstrap command debootstrap
lintian lintian command lintian
golang-go Go command go
nginx-light nginx command nginx
nodejs Node.js command node
unzip unzip command unzip
zip zip command zip
python3 Python command python3
python3-venv venv-and-ensurepip-of-Python module ensurepip
"
case $compiler in
  clang++*)
    set -- "clang${compiler#clang++}" "$@"
    known_packages="$known_packages
clang${compiler#clang++} $compiler command $compiler" ;;
  *)
    set -- "$compiler" "$@"
    known_packages="$known_packages
$compiler $compiler command $compiler" ;;
esac

# Without a compiler nobody knows which headers are missing.
is_missing() {
  case $1 in
    header) command -v "$compiler" > /dev/null && ! echo "#include <$2>" | "$compiler" -std=c++20 -x c++ -E - > /dev/null 2>&1 ;;
    command) ! command -v "$2" > /dev/null ;;
    module) ! python3 -c "import $2" 2> /dev/null ;;
  esac
}

# Sets `packages` and `names` to those that are missing.
find_missing() {
  packages='' names=''
  for package in "$@"; do
    entry=$(echo "$known_packages" | awk -v package="$package" '$1 == package')
    if [ -z "$entry" ]; then echo "packages.sh: unknown package $package" >&2; exit 2; fi
    read -r package name kind what << END
$entry
END
    if is_missing "$kind" "$what"; then packages="$packages $package" names="$names $name"; fi
  done
}

find_missing "$@"
[ -n "$packages" ] || exit 0
if [ "$action" = check ] || ! command -v apt-get > /dev/null; then
  echo "missing:$names; install them with your package manager (Debian's names:$packages), or on Debian with make packages" >&2
  exit 1
fi
as_root=$([ "$(id -u)" = 0 ] || echo sudo)
$as_root apt-get update -qq
install() {
  [ -n "$packages" ] || return 0
  echo "Installing missing Debian packages:$packages"
  # shellcheck disable=SC2086 # A list of words.
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages
}
install
# Now there is a compiler to ask for headers.
find_missing "$@"
install
find_missing "$@"
if [ -n "$packages" ]; then
  echo "missing even so:$names" >&2
  exit 1
fi
