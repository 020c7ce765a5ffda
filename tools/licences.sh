#!/bin/sh
# licences.sh VERSION PACKAGE...: writes the licences of the program, of the bundled poet and of what is compiled in, with versions:
# these Debian packages, headers of templates included, and the compilers' and the C libraries: of all targets of release.sh, or of
# RELEASE_TARGET alone. Where such a package is not installed, its text is with the library that took its place.
set -eu

version=$1
shift
echo "minimind $version: LICENSE of this project; the poet: weights/demo/LICENSE"
cat LICENSE weights/demo/LICENSE
# Cross compilers have libraries of their own versions.
case ${RELEASE_TARGET:=all} in all | linux-x86_64) set -- "$@" libc6-dev libstdc++-12-dev ;; esac
case $RELEASE_TARGET in all | linux-aarch64) set -- "$@" libc6-dev-arm64-cross libstdc++-12-dev-arm64-cross ;; esac
case $RELEASE_TARGET in all | windows-*) set -- "$@" mingw-w64-x86-64-dev gcc-mingw-w64-x86-64-posix-runtime ;; esac
for package in "$@" libboost1.74-dev; do
  [ -e "/usr/share/doc/$package/copyright" ] || continue
  printf '\n==== %s ====\n' "$(dpkg-query -W -f '${Package} ${Version}' "$package")"
  cat "/usr/share/doc/$package/copyright"
done
case $RELEASE_TARGET in linux-* | windows-*) exit ;; esac
for ziglang in build/zig/lib/python3*/site-packages/ziglang; do
  [ -e "$ziglang" ] || continue
  printf '\n==== ziglang %s, in the files for macOS and Android ====\n' "$(echo "$ziglang"-*.dist-info | sed 's/.*ziglang-\(.*\)\.dist-info/\1/')"
  for text in LICENSE lib/libcxx/LICENSE.TXT lib/libcxxabi/LICENSE.TXT lib/libunwind/LICENSE.TXT lib/libc/musl/COPYRIGHT; do
    printf '\n== %s ==\n' "$text"
    cat "$ziglang/$text"
  done
done
