#!/bin/sh
# sysroot_of_sources.sh FOLDER COMPILER ARCHIVER: makes FOLDER, unless it is there and newer than this file, with what the program
# for a system without packages of Debian is compiled and linked with besides that system's own: the headers of libraries that are
# the same on all systems; and zlib and utf8proc, from the sources of Debian 12's packages. An sdist has these headers and sources.
set -eu

folder=$1 compiler=$2 archiver=$3
zlib=zlib-1.2.13.dfsg utf8proc=utf8proc-2.8.0
headers='boost CLI fmt nlohmann xsimd utf8proc.h'
sources="$utf8proc $zlib $headers"
[ "$folder/versions" -nt "$0" ] && exit

# Takes its name, that of its archive and a hash.
unpack() {
  /usr/lib/apt/apt-helper -qq download-file "http://deb.debian.org/debian/pool/main/$1/$2" "$(basename "$2")" "SHA256:$3"
  tar -xf "$(basename "$2")"
}

fetch() {
  rm -rf "$folder"
  mkdir -p "$folder/include"
  (
    cd "$folder"
    for header in $headers; do
      ln -s "/usr/include/$header" "include/$header"
    done
    unpack u utf8proc/utf8proc_2.8.0.orig.tar.gz a0a60a79fe6f6d54e7d411facbfcc867a6e198608f2cd992490e46f04b1bcecc
    unpack z zlib/zlib_1.2.13.dfsg.orig.tar.bz2 71feb7947e3c00ef125f83b79a4e529bde31171e5babe48b391f06758d1ab0a1
    cp $zlib/zlib.h $zlib/zconf.h include
    echo "$sources" > sources
  )
}
if [ "$(cat "$folder/sources" 2> /dev/null)" != "$sources" ]; then fetch; fi
mkdir -p "$folder/lib"

# Takes the name of a library, the folder of its sources and their names. zlib takes Apple's systems for ones without fdopen(), unless
# it is a macro.
library() {
  name=$1 of=$folder/$2
  shift 2
  for source in "$@"; do
    $compiler -O2 -fPIC -fvisibility=hidden -w -DUTF8PROC_STATIC -Dfdopen=fdopen -c "$of/$source.c" -o "$folder/lib/$source.o"
    $archiver rcsD "$folder/lib/lib$name.a" "$folder/lib/$source.o"
  done
}
library utf8proc $utf8proc utf8proc
library z $zlib adler32 compress crc32 deflate inffast inflate inftrees trees zutil
cp "$folder/sources" "$folder/versions"
