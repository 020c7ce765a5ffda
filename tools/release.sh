#!/bin/sh
# release.sh MINIMIND VERSION TARGET...
#
# Builds one file to download for each target under build/release-files, and their SHA256SUMS. In it are LICENSES.txt, the licences and
# versions of the libraries within the program (LIBRARIES names their packages), and the whole program with the bundled poet within it
# as q8_0, which needs nothing but the system. Two builds of one commit with the same packages give the same bytes. MINIMIND is the
# program for this machine, which writes the poet. ZIG is the command of zig, whose compiler writes the programs for macOS and Android.
# GOALS are what make shall do for each target besides: `wheel` writes its package for Python into build/for/TARGET/wheel.
set -eu

program=$1
version=$2
shift 2
files=$(pwd)/build/release-files
work=build/for
rm -rf "$files"
mkdir -p "$files" $work
# Of all that is packed: the day of the version, that two builds give the same bytes.
date=$(sed -n 's/^ -- .*>  //p' tools/debian/changelog | head -n 1)

# pack NAME FILE...: packs the files in a folder of this name, as the system's own programs unpack it.
pack() {
  name=$1
  shift
  rm -rf "${work:?}/$name"
  mkdir "$work/$name"
  cp "$@" "$work/$name"
  chmod -R u=rwX,go=rX "$work/$name"
  TZ=UTC touch -d "$date" "$work/$name" "$work/$name"/*
  case $name in
    *windows*) (cd $work && TZ=UTC zip -qX9 "$files/$name.zip" "$name" "$name"/*) ;;
    *) tar -C $work --sort=name --owner=0 --group=0 --numeric-owner -c "$name" | gzip -9n > "$files/$name.tar.gz" ;;
  esac
}

poet=$work/minimind-poet.gguf
"$program" convert weights/demo/model.pth $poet --type q8_0 --force -q

for target in "$@"; do
  # Debian's compilers, and zig's for the systems that Debian has none for.
  system=linux suffix=''
  case $target in
    linux-x86_64) compiler=g++ sysroot='' ;;
    linux-aarch64)
      compiler=aarch64-linux-gnu-g++
      tools/sysroot.sh arm64 aarch64-linux-gnu $work/sysroot-arm64
      sysroot=$work/sysroot-arm64 ;;
    windows-x86_64)
      compiler=x86_64-w64-mingw32-g++-posix system=windows suffix=.exe
      sysroot=$work/sysroot-windows
      tools/sysroot_of_sources.sh "$sysroot" x86_64-w64-mingw32-gcc-posix x86_64-w64-mingw32-ar ;;
    macos-aarch64 | macos-x86_64 | android-aarch64)
      system=${target%-*} sysroot=$work/sysroot-$target
      # Android ends a program that calls what glibc calls at its start; musl, which is static here, does not.
      case $system in macos) zig_target=${target#*-}-macos.11.0 ;; *) zig_target=aarch64-linux-musl ;; esac
      compiler="$ZIG c++ -target $zig_target"
      tools/sysroot_of_sources.sh "$sysroot" "$ZIG cc -target $zig_target" "$ZIG ar" ;;
    *) echo "release.sh: unknown target $target; see tools/release.sh" >&2; exit 2 ;;
  esac
  build=$work/$target
  # shellcheck disable=SC2086 # A list of words.
  make --no-print-directory STATIC=1 BUILD="$build" CXX="$compiler" MACHINE="${target#*-}" SYSROOT="$sysroot" \
    SYSTEM=$system BUNDLED_MODEL=$poet WHEEL="$build/wheel" program $GOALS
  # shellcheck disable=SC2086 # A list of words.
  RELEASE_TARGET=$target tools/licences.sh "$version" $LIBRARIES > "$build/LICENSES.txt"
  pack "minimind-$version-$target" "$build/minimind$suffix" "$build/LICENSES.txt"
done
(cd "$files" && sha256sum -- * > SHA256SUMS && cat SHA256SUMS && ls -l)
