#!/bin/sh
# sysroot.sh FOLDER: makes FOLDER, unless it is there, with what the program for Windows is compiled and linked with besides mingw-w64:
# the headers of libraries that are the same on all systems; zlib, of Debian's package; and utf8proc, from the sources of Debian 12's.
set -eu

folder=$1
version=2.8.0
hash=a0a60a79fe6f6d54e7d411facbfcc867a6e198608f2cd992490e46f04b1bcecc
[ -e "$folder/versions" ] && exit
rm -rf "$folder"
mkdir -p "$folder/include" "$folder/lib"
for header in boost CLI fmt nlohmann xsimd utf8proc.h; do
  ln -s "/usr/include/$header" "$folder/include/$header"
done
archive=utf8proc_$version.orig.tar.gz
/usr/lib/apt/apt-helper -qq download-file "http://deb.debian.org/debian/pool/main/u/utf8proc/$archive" "$folder/$archive" SHA256:$hash
tar -xzf "$folder/$archive" -C "$folder"
cd "$folder"
apt-get -qq download libz-mingw-w64-dev
dpkg-deb -x libz-mingw-w64-dev_*.deb .
mv usr/x86_64-w64-mingw32/include/* include
mv usr/x86_64-w64-mingw32/lib/libz.a lib
x86_64-w64-mingw32-gcc-posix -O2 -DUTF8PROC_STATIC -c utf8proc-$version/utf8proc.c -o lib/utf8proc.o
x86_64-w64-mingw32-ar rcsD lib/libutf8proc.a lib/utf8proc.o
{ dpkg-deb -f libz-mingw-w64-dev_*.deb Package Version; echo "utf8proc $version"; } > versions
