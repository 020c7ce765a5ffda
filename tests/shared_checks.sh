#!/bin/sh
# Runs the project's own checks if ../shared exists next to the checkout.
set -eu
shared=$(dirname "$0")/../../shared/check
[ -d "$shared" ] || exit 0
python3 "$shared/checkpoints.py" "$1"
python3 "$shared/tokenizer.py" "$1"
python3 "$shared/malformed.py" "$1"
