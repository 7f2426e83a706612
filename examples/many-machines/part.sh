#!/usr/bin/env bash
# Runs a part of an experiment's plan, or goes on with it: what slurm.sh and on_dask.py have machines do.
# Usage, in the work tree: part.sh NUMBER PARTS CONFIG OUT [RUN OPTIONS]; the part is OUT.parts/NUMBER.
set -euo pipefail
part=$4.parts/$1 words=("$3" --shard "$1/$2" "${@:5}" -o "$4.parts/$1")
# One at a time: where it began elsewhere, it may not have ended yet.
exec {lock}>>"$part.lock"
flock "$lock"
[[ ! -e $part/manifest.json ]] || words=(--resume "$part")
exec ./run.sh run "${words[@]}"
