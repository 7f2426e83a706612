#!/bin/sh
# Has the program's own Python on this machine, then runs the command line (firstflight/start.py); without
# arguments it rebuilds Table 1.
set -eu

# git bisect run takes 1 to 124 for "bad", and 128 and up for what ends it (firstflight/cli/main.py).
if [ "${1:-} ${2:-}" = "kernel bisect-step" ]; then
  trap 'status=$?; [ "$status" = 0 ] || [ "$status" -gt 127 ] || exit $((128 + status))' EXIT
fi
here=$(dirname -- "$(readlink -f -- "$0")")
# shellcheck source=bootstrap/python.sh
. "$here/bootstrap/python.sh"
# -P: modules come from this tree and the locked environment, never from the working directory.
unset PYTHONHOME
PYTHONPATH=$here exec "${python:?}" -P -m firstflight.start "$@"
