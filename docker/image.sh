#!/bin/sh
# Fills an image, step by step as the Dockerfile asks, with what a run sets up on a machine.
# Usage: image.sh parts | packages LOCK | finish      (as root, in the image; firstflight/image.py)
set -eu

here=$(dirname -- "$(dirname -- "$(readlink -f -- "$0")")")
step="$*"
set -- "$here"/docker/packs/*.tar
if [ "$step" = parts ] && [ -f "$1" ]; then
  step="parts $1"
  set -- root import "$1" # the program's own Python is in it, too
fi
# shellcheck source=bootstrap/python.sh
. "$here/bootstrap/python.sh"
# shellcheck disable=SC2086 # words
PYTHONPATH=$here exec "${python:?}" -P -m firstflight.image $step
