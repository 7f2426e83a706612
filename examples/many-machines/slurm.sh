#!/usr/bin/env bash
# Runs an experiment as a Slurm job array, a part of the plan in each job, and merges the parts.
# Usage, in the work tree, which all nodes see:
#   examples/many-machines/slurm.sh PARTS CONFIG OUT [RUN OPTIONS]; SBATCH_PARTITION and the like say where.
# The same command again goes on with parts that did not end.
#SBATCH --exclusive
set -euo pipefail
parts=$1 out=$3
if [[ -n ${SLURM_ARRAY_TASK_ID:-} ]]; then
  exec examples/many-machines/part.sh "$SLURM_ARRAY_TASK_ID" "$@"
fi
mkdir -p -- "$out.parts"
job=$(sbatch --parsable --array="1-$parts" --output="$out.parts/%a.log" -- "$0" "$@")
# Also after a part that failed: the merge says what is missing.
exec sbatch --wait --dependency="afterany:${job%%;*}" --output="$out.parts/merge.log" \
  --wrap="./run.sh merge $(printf '%q' "$out.parts")/[0-9]*/ -o $(printf '%q' "$out")"
