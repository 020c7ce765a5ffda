#!/bin/sh
# release.sh MINIMIND VERSION TARGET...
#
# Builds one file for each target under build/release-files: the whole program with the bundled poet within it as q8_0, which needs
# nothing but the kernel. Two builds of one commit with the same packages give the same bytes. Beside the files: SHA256SUMS, and the
# licences and versions of the libraries that are within them: LIBRARIES names their packages. MINIMIND is the program for this
# machine, which writes the poet.
set -eu

program=$1
version=$2
shift 2
root=$(pwd)
files=build/release-files
work=build/for
rm -rf $files
mkdir -p $files $work

poet=$work/minimind-poet.gguf
"$program" convert weights/demo/model.pth $poet --type q8_0 --force -q

# Debian's packages of another architecture, whose lists and files are kept apart from the system's.
apt_for() {
  architecture=$1
  shift
  state=$root/$work/apt-$architecture
  mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
  touch "$state/status"
  apt-get -qq -o APT::Architecture="$architecture" -o APT::Architectures="$architecture" -o Dir::State="$state" \
    -o Dir::State::status="$state/status" -o Dir::Cache="$state/cache" "$@"
}

# Headers that every machine shares, and the static libraries of the architecture.
make_sysroot() {
  architecture=$1 triple=$2
  sysroot=$work/sysroot-$architecture
  [ -e "$sysroot/versions" ] && return
  rm -rf "$sysroot"
  mkdir -p "$sysroot/include" "$sysroot/lib" "$sysroot/packages"
  for header in boost CLI fmt nlohmann xsimd utf8proc.h zlib.h zconf.h; do
    ln -s "/usr/include/$header" "$sysroot/include/$header"
  done
  apt_for "$architecture" update
  (cd "$sysroot/packages" && for package in libutf8proc-dev zlib1g-dev; do apt_for "$architecture" download "$package"; done)
  for package in "$sysroot"/packages/*.deb; do
    dpkg-deb -x "$package" "$sysroot/packages"
    dpkg-deb -f "$package" Package Version >> "$sysroot/versions.new"
  done
  cp "$sysroot/packages/usr/lib/$triple"/*.a "$sysroot/lib"
  mv "$sysroot/versions.new" "$sysroot/versions"
}

for target in "$@"; do
  case $target in
    linux-x86_64) compiler=g++ sysroot='' ;;
    linux-aarch64)
      compiler=aarch64-linux-gnu-g++
      make_sysroot arm64 aarch64-linux-gnu
      sysroot=$root/$work/sysroot-arm64 ;;
    *) echo "release.sh: unknown target $target, expected linux-x86_64 or linux-aarch64" >&2; exit 2 ;;
  esac
  build=$work/$target
  make --no-print-directory STATIC=1 BUILD="$build" CXX="$compiler" MACHINE="${target#linux-}" SYSROOT="$sysroot" \
    BUNDLED_MODEL=$poet "$build/minimind"
  install -m 755 "$build/minimind" "$files/minimind-$version-$target"
done
# shellcheck disable=SC2086 # A list of words.
tools/licences.sh "$version" $LIBRARIES > $files/LICENSES.txt
(cd $files && sha256sum -- * > SHA256SUMS && cat SHA256SUMS && ls -l)
