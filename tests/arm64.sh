#!/bin/sh
# arm64.sh PROCESSOR...: compiles the program and all tests of C++ for 64-bit ARM, and runs them under qemu-user on each: as a
# Raspberry Pi 4, cortex-a72 lacks the dot product of 8 bits, neoverse-n1 has it, and max has all that qemu has.
set -eu

cd "$(dirname "$0")/.."
build=build/for/linux-aarch64
sysroot=build/for/sysroot-arm64
tools/sysroot.sh arm64 aarch64-linux-gnu $sysroot
mkdir -p $build
printf '#!/bin/sh\nexec qemu-aarch64 "%s" "$@"\n' "$PWD/$build/minimind" > $build/emulated_minimind
chmod +x $build/emulated_minimind
export QEMU_LD_PREFIX=/usr/aarch64-linux-gnu
for QEMU_CPU in "$@"; do
  echo "arm64.sh: $QEMU_CPU"
  export QEMU_CPU
  make --no-print-directory STATIC=1 BUILD=$build CXX=aarch64-linux-gnu-g++ MACHINE=aarch64 SYSROOT=$sysroot \
    run-tests-on-all-cores EMULATOR=qemu-aarch64 TESTED_PROGRAM=$build/emulated_minimind
done
