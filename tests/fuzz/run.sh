#!/bin/sh
# run.sh TARGET FOLDER OPTION...: runs one fuzz target of `make fuzz` and adds its executions and CPU time to
# FOLDER/runs.tsv, from which the table in README.md is written. An input that fails is kept in FOLDER/faults.
target=$1
folder=$2
shift 2
mkdir -p "$folder/faults"
log=$folder/$target.log
isa=sse2
[ "$(uname -m)" != aarch64 ] || isa=neon
MINIMIND_ISA=$isa ASAN_OPTIONS=allocator_may_return_null=1:$ASAN_OPTIONS \
  "$folder/${target}_fuzz" -print_final_stats=1 -artifact_prefix="$folder/faults/$target-" "$@" \
  "$folder/corpus/$target" "$folder/seeds/$target" > "$log" 2>&1
status=$?
times > "$log.times"  # in a pipe, it would be that of a process of the pipe
seconds=$(awk 'NR == 2 { split($1, own, /[ms]/); split($2, kernel, /[ms]/); print int(60 * (own[1] + kernel[1]) + own[2] + kernel[2]) }' "$log.times")
executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
printf '%s\t%s\t%s\n' "$target" "${executions:-0}" "$seconds" >> "$folder/runs.tsv"
echo "$target: ${executions:-0} inputs in $seconds CPU seconds"
[ $status = 0 ] || { tail -n 60 "$log"; ls "$folder/faults/$target-"*; }
exit $status
