#!/bin/sh
# sysroot.sh ARCHITECTURE TRIPLE FOLDER: makes FOLDER, unless it is there, with what is compiled and linked for another architecture
# of Debian: the headers that all machines share, and static libraries. Lists and files of its packages stay apart from the
# system's.
set -eu

architecture=$1 triple=$2 folder=$3
[ -e "$folder/versions" ] && exit
rm -rf "$folder"
mkdir -p "$folder/include" "$folder/lib" "$folder/packages" "$folder/apt/lists/partial" "$folder/apt/cache/archives/partial"
touch "$folder/apt/status"
apt=$(cd "$folder/apt" && pwd)

apt_for() {
  apt-get -qq -o APT::Architecture="$architecture" -o APT::Architectures="$architecture" -o Dir::State="$apt" \
    -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache" "$@"
}

for header in boost CLI fmt gtest nlohmann xsimd utf8proc.h zlib.h zconf.h; do
  ln -s "/usr/include/$header" "$folder/include/$header"
done
apt_for update
(cd "$folder/packages" && apt_for download libgtest-dev libutf8proc-dev zlib1g-dev)
for package in "$folder"/packages/*.deb; do
  dpkg-deb -x "$package" "$folder/packages"
  dpkg-deb -f "$package" Package Version >> "$folder/versions.new"
done
cp "$folder/packages/usr/lib/$triple"/*.a "$folder/lib"
mv "$folder/versions.new" "$folder/versions"
