#!/bin/sh
# Runs a command with everything that development needs: the locked tools come first on PATH.
# Usage: develop.sh [--without-kernel | --notebooks | --labs | --many-machines] COMMAND [ARGS]
set -eu

here=$(dirname -- "$(dirname -- "$(readlink -f -- "$0")")")
# shellcheck source=bootstrap/python.sh
. "$here/bootstrap/python.sh"
unset PYTHONHOME
PYTHONPATH=$here exec "${python:?}" -P -m testbed.setup.develop "$@"
