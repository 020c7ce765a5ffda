#!/bin/sh
# hardening.sh FILE...: each program or library is protected as the Makefile asks for: its addresses are random, its stack cannot
# be executed, its tables of functions are read-only once it runs, and its code has checks of the stack, of the sizes of buffers
# and of the targets of jumps; on x86 its returns may be checked against a shadow stack. A static program has no names of functions
# that would show the first two of these checks.
set -eu

lacks() {
  echo "$file: lacks $1" >&2
  exit 1
}

for file in "$@"; do
  readelf --wide --file-header "$file" | grep -q 'Type: *DYN' || lacks 'position independence'
  readelf --wide --program-headers "$file" | grep -q 'GNU_RELRO' || lacks 'RELRO'
  readelf --wide --program-headers "$file" | grep 'GNU_STACK' | grep -q ' RW ' || lacks 'a stack without code'
  readelf --wide --dynamic "$file" | grep -q 'BIND_NOW\|Flags:.* NOW' || lacks 'BIND_NOW'
  if readelf --wide --dynamic "$file" | grep -q 'NEEDED'; then
    symbols=$(nm --dynamic --undefined-only "$file")
    echo "$symbols" | grep -q '__stack_chk_' || lacks 'checks of the stack'
    echo "$symbols" | grep -v '__stack_chk_' | grep -q '_chk@' || lacks 'checks of the sizes of buffers'
  fi
  case $(readelf --file-header "$file" | sed -n 's/ *Machine: *//p') in
    *X86-64)
      machine=x86_64 landing='endbr64'
      readelf --wide --notes "$file" | grep -q 'x86 feature:.*SHSTK' || lacks 'the property of shadow stacks (SHSTK)'
      ;;
    AArch64) machine=aarch64 landing='bti\|paciasp' ;;
    *) continue ;;
  esac
  objdump=$([ "$(uname -m)" = $machine ] || echo $machine-linux-gnu-)objdump
  $objdump --disassemble --no-show-raw-insn --section=.text "$file" | grep -q -m 1 "$landing" || lacks 'marked targets of jumps'
done
