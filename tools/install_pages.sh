#!/bin/sh
# install_pages.sh MINIMIND SHARE ZSH: writes the program's man pages, in both languages, into SHARE/man, and its completions where
# bash and fish look below SHARE, and zsh in ZSH.
set -eu

program=$1
share=$2
zsh=$3

write_man_pages() {
  mkdir -p "$2"
  main=$("$program" --lang "$1" --man minimind)
  printf '%s\n' "$main" > "$2/minimind.1"
  for command in $(printf '%s\n' "$main" | sed -n 's/^\\fBminimind\\-\([a-z]*\)\\fR(1)$/\1/p'); do
    "$program" --lang "$1" --man "$command" > "$2/minimind-$command.1"
  done
}

write_man_pages en "$share/man/man1"
write_man_pages zh "$share/man/zh_CN/man1"
mkdir -p "$share/bash-completion/completions" "$share/fish/vendor_completions.d" "$zsh"
"$program" --lang en --completion bash > "$share/bash-completion/completions/minimind"
"$program" --lang en --completion fish > "$share/fish/vendor_completions.d/minimind.fish"
"$program" --lang en --completion zsh > "$zsh/_minimind"
