#!/bin/sh
# arm64.sh [FILTER]: compiles the program and all tests of C++ for 64-bit ARM, and runs those tests, or the ones that GoogleTest's
# filter names, under qemu-user on a processor without the dot product of 8 bits, as in a Raspberry Pi 4, on one with it, and on one
# with all that qemu has. PROCESSORS names others; as many tests run at once as there are cores.
set -eu

cd "$(dirname "$0")/.."
build=build/for/linux-aarch64
sysroot=build/for/sysroot-arm64
tools/sysroot.sh arm64 aarch64-linux-gnu $sysroot
make --no-print-directory STATIC=1 BUILD=$build CXX=aarch64-linux-gnu-g++ MACHINE=aarch64 SYSROOT=$sysroot \
  $build/minimind $build/minimind_tests
cores=$(nproc)
for processor in ${PROCESSORS:-cortex-a72 neoverse-n1 max}; do
  echo "arm64.sh: $processor"
  export QEMU_CPU="$processor" QEMU_LD_PREFIX=/usr/aarch64-linux-gnu
  printf '#!/bin/sh\nexec qemu-aarch64 "%s" "$@"\n' "$PWD/$build/minimind" > $build/emulated_minimind
  chmod +x $build/emulated_minimind
  shards=
  for shard in $(seq 0 $((cores - 1))); do
    MINIMIND_PROGRAM=$build/emulated_minimind GTEST_TOTAL_SHARDS=$cores GTEST_SHARD_INDEX=$shard \
      qemu-aarch64 $build/minimind_tests --gtest_brief=1 --gtest_filter="${1:-*}" &
    shards="$shards $!"
  done
  failed=0
  for shard in $shards; do wait "$shard" || failed=1; done
  [ $failed -eq 0 ] || exit 1
done
