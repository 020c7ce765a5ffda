#!/bin/sh
# Checks that each given object, the kernels of one instruction set, exports its table and nothing else. The linker
# could choose a weak symbol, such as a template of the standard library, for the whole program, which would then crash
# on a machine without those instructions.
set -eu
for object in "$@"; do
  exported=$(nm -C --defined-only --extern-only "$object" | cut -d ' ' -f 3-)
  expected="minimind::kernels::$(basename "$object" .o)"
  if [ "$exported" != "$expected" ]; then
    printf '%s exports\n%s\nexpected only %s\n' "$object" "$exported" "$expected" >&2
    exit 1
  fi
done
