#!/usr/bin/env bash
# Runs an experiment on machines that ssh reaches, by GNU parallel, and merges what comes back.
# Usage: parallel.sh HOSTS PARTS CONFIG OUT [RUN OPTIONS]
# HOSTS is a file with an ssh destination a line. On each, the work tree is FOLDER (default: firstflight, in
# the home folder), at the same revision. A part that cannot come back is run elsewhere, three times at most.
set -euo pipefail
hosts=$1 parts=$2 config=$3 out=$4
mkdir -p -- "$out.parts"
# shellcheck disable=SC2016 # the other machine's shell expands it
run='cd '$(printf '%q' "${FOLDER:-firstflight}")' && kept=$(mktemp -d) && trap "rm -rf -- $kept" EXIT &&
  { ./run.sh run '$(printf '%q ' "$config" "${@:5}")' --shard {}/'$parts' -o "$kept/{}" >&2
    tar -cC "$kept" {}; }'
# One part at a time on a machine, which has a load on each core. Archives one behind the other are an archive.
seq "$parts" | parallel --sshloginfile "$hosts" --jobs 1 --retries 3 "$run" |
  tar -x --ignore-zeros -C "$out.parts"
exec ./run.sh merge "$out.parts"/*/ -o "$out"
