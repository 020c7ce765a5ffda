#!/bin/sh
# Checks that each given object, the kernels of one instruction set, exports only its table. The linker could choose a weak
# symbol in it, such as a template of the standard library, for the whole program, which would then crash on a machine without
# those instructions.
set -eu
for object in "$@"; do
  exported=$(nm -C --defined-only --extern-only "$object" | cut -d ' ' -f 3-)
  expected="minimind::kernels::$(basename "$object" .o)"
  if [ "$exported" != "$expected" ]; then
    printf '%s: exports\n%s\n, expected only %s\n' "$object" "$exported" "$expected" >&2
    exit 1
  fi
done
