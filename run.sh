#!/bin/sh
# Has the program's own Python on this machine, then runs the command line (firstflight/start.py); without
# arguments it rebuilds Table 1.
set -eu

# git bisect run takes 1 to 124 for "bad", and 128 and up for what ends it (firstflight/cli/main.py).
beyond=0
[ "${1:-} ${2:-}" != "kernel bisect-step" ] || beyond=128
here=$(dirname -- "$(readlink -f -- "$0")")
# shellcheck source=bootstrap/python.sh
. "$here/bootstrap/python.sh"
# -P: modules come from this tree and the locked environment, never from the working directory.
unset PYTHONHOME
# A signal waits until the program can tell it, where env(1) can have it wait.
later=
! env --block-signal=INT true 2>/dev/null || later='env --block-signal=INT,TERM,HUP'
# shellcheck disable=SC2086 # words
PYTHONPATH=$here exec $later "${python:?}" -P -m firstflight.start "$@"
