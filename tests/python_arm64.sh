#!/bin/sh
# python_arm64.sh FOLDER PIP: makes FOLDER, unless it is there, with what a new environment of Python for 64-bit ARM needs: root/,
# Debian's Python and what it depends on, unpacked; and wheels/, NumPy, which PIP downloads. Needs build/for/sysroot-arm64.
set -eu

folder=$1 pip=$2
[ -e "$folder/complete" ] && exit
rm -rf "$folder"
mkdir -p "$folder/root"
apt=$PWD/build/for/sysroot-arm64/apt
apt-get -qq -y -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State="$apt" -o Dir::State::status="$apt/status" \
  -o Dir::Cache="$apt/cache" --no-install-recommends --download-only install python3 python3-pip-whl libstdc++6
for package in "$apt"/cache/archives/*.deb; do dpkg-deb -x "$package" "$folder/root"; done
version=$(basename "$(ls -d "$folder"/root/usr/lib/python3.*)")
"$pip" download -q --platform manylinux_2_28_aarch64 --python-version "${version#python}" --only-binary=:all: -d "$folder/wheels" numpy
touch "$folder/complete"
