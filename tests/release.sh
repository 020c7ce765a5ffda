#!/bin/sh
# release.sh FOLDER: checks the files that `make release` wrote there, and runs what they hold. Programs for another machine than this
# run under qemu-user, each as several processors; speed is not looked at.
set -eu

folder=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
most_bytes=10000000

fail() {
  echo "release.sh: $*" >&2
  failures=$((failures + 1))
}

# Sets `processors` to those that the file is tried with: the emulator and its processor, or "-" for this machine.
choose_processors() {
  case $1 in
    *linux-"$(uname -m)") processors='-' ;;
    *linux-aarch64) processors='cortex-a72 neoverse-n1 max' ;;
    *linux-x86_64) processors='Nehalem max' ;;
  esac
}

# run PROCESSOR ARGUMENT...: runs the program of this `name`.
run() {
  processor=$1
  shift
  if [ "$processor" = - ]; then "$file" "$@"; else "qemu-${name##*-}" -cpu "$processor" "$file" "$@"; fi
}

(cd "$folder" && sha256sum --quiet -c SHA256SUMS) || fail "SHA256SUMS does not agree"
# Of 16 tokens: the 17th has two candidates so close that instruction sets, which round differently, choose another one.
poem=$(./minimind generate -q --greedy -n 16 -m "$folder/../for/minimind-poet.gguf" -p '床前明月光，')
tokens=$(./minimind generate -q --greedy -n 24 --tokens 5,6,7 -m tests/golden/v3-moe/model.pth)
for packed in "$folder"/minimind-*; do
  bytes=$(stat -c %s "$packed")
  [ "$bytes" -le $most_bytes ] || fail "$(basename "$packed") has $bytes bytes, expected at most $most_bytes"
  case $packed in *.zip) unzip -q "$packed" -d "$work" ;; *) tar -C "$work" -xf "$packed" ;; esac
done
for unpacked in "$work"/minimind-*; do
  [ -x "$unpacked"/minimind* ] && [ -s "$unpacked/LICENSES.txt" ] || fail "$(basename "$unpacked") has no program, or no licences"
done
# Those for other systems are checked by tests/windows.py, tests/macos.py and tests/android.py.
for unpacked in "$work"/minimind-*-linux-*; do
  name=$(basename "$unpacked") file=$unpacked/minimind
  ! readelf -l "$file" | grep -q INTERP || fail "$name needs a loader"
  ! readelf -d "$file" | grep -q NEEDED || fail "$name needs libraries"
  # README names that of x86-64.
  case $name in *-x86_64) kernel=3.2.0 ;; *) kernel=3.7.0 ;; esac
  readelf -n "$file" | grep -qF "OS: Linux, ABI: $kernel" || fail "$name needs another kernel than $kernel"
  tests/hardening.sh "$file" || fail "$name is not hardened"
  # Of what is in it alone, so that it has the same bytes whatever other files are made with it.
  [ "$(grep -cE '^==== (libc6|mingw|ziglang)' "$unpacked/LICENSES.txt")" = 1 ] || fail "$name has licences of other files, or lacks its own"
  choose_processors "$name"
  for processor in $processors; do
    [ "$(run "$processor" generate -q --greedy -n 16 -p '床前明月光，')" = "$poem" ] ||
      fail "$name ($processor): another poem than that of the poet's file"
    [ "$(run "$processor" generate -q --greedy -n 24 --tokens 5,6,7 -m tests/golden/v3-moe/model.pth)" = "$tokens" ] ||
      fail "$name ($processor): other tokens than this machine's program"
    (cd "$work" && run "$processor" convert "$OLDPWD/weights/demo/model.pth" minimind-poet.gguf --type q8_0 -q --force) ||
      fail "$name ($processor): does not convert"
    cmp -s "$work/minimind-poet.gguf" "$folder/../for/minimind-poet.gguf" || fail "$name ($processor): writes another GGUF"
  done
done
[ "$failures" = 0 ] && echo "release.sh: all checks passed"
