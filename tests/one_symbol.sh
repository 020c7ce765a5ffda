#!/bin/sh
# Each object given, the kernels of one instruction set, must export its table and nothing else. A weak symbol in it, such
# as a template of the standard library, could be chosen by the linker for the whole program, which would then die on a
# machine without those instructions.
set -eu
for object in "$@"; do
  exported=$(nm -C --defined-only --extern-only "$object" | cut -d ' ' -f 3-)
  wanted="minimind::kernels::$(basename "$object" .o)"
  if [ "$exported" != "$wanted" ]; then
    printf '%s exports\n%s\nwanted only %s\n' "$object" "$exported" "$wanted" >&2
    exit 1
  fi
done
