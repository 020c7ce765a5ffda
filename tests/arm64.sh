#!/bin/sh
# arm64.sh UNIT...: compiles the program and these tests for 64-bit ARM, and runs the tests under qemu-user on a processor without
# the dot product of 8 bits, as in a Raspberry Pi 4, on one with it, and on one with all that qemu has.
set -eu

cd "$(dirname "$0")/.."
build=build/for/linux-aarch64
sysroot=build/for/sysroot-arm64
tools/sysroot.sh arm64 aarch64-linux-gnu $sysroot
make --no-print-directory STATIC=1 BUILD=$build CXX=aarch64-linux-gnu-g++ MACHINE=aarch64 SYSROOT=$sysroot \
  TEST_UNITS="$*" $build/minimind_tests
for processor in cortex-a72 neoverse-n1 max; do
  echo "arm64.sh: $processor"
  qemu-aarch64 -L /usr/aarch64-linux-gnu -cpu $processor $build/minimind_tests --gtest_brief=1
done
