#!/bin/sh
# licences.sh VERSION PACKAGE...: writes the licences of the program, of the bundled poet and of what is compiled in: these Debian
# packages, headers of templates included, and the compiler's and the C library. Where such a package is not installed, its text is
# with the library that took its place.
set -eu

version=$1
shift
echo "minimind $version: LICENSE of this project; the poet: weights/demo/LICENSE"
cat LICENSE weights/demo/LICENSE
for package in "$@" libboost1.74-dev libc6-dev libstdc++-12-dev mingw-w64-x86-64-dev; do
  [ -e "/usr/share/doc/$package/copyright" ] || continue
  printf '\n==== %s ====\n' "$(dpkg-query -W -f '${Package} ${Version}' "$package")"
  cat "/usr/share/doc/$package/copyright"
done
for text in build/zig/lib/python3*/site-packages/ziglang/lib/libcxx/LICENSE.TXT; do
  [ -e "$text" ] || continue
  printf '\n==== libc++ of ziglang, in the file for macOS ====\n'
  cat "$text"
done
