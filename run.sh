#!/usr/bin/env bash
# Sets this machine up as far as need be, then runs `testbed ARGS` (firstflight/__main__.py); no ARGS rebuild Table 1.
set -euo pipefail

# git bisect run takes 1 to 124 for "bad", and 128 and up for what ends it (firstflight/cli/main.py).
[[ "${1:-} ${2:-}" != "kernel bisect-step" ]] ||
  trap 'status=$?; ((status == 0 || status > 127)) || exit $((128 + status))' EXIT

# shellcheck source=bootstrap/main.sh
source "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/bootstrap/main.sh"
answer "$@"
# What is imported may be the Python environment itself.
[[ ${level:?} != file ]] ||
  PYTHONPATH=$root exec /usr/bin/python3 -P -S -m testbed.packs.root_import "${@: -1}"
bootstrap "$level"
# -P: modules come from this tree and the locked environment, never from the working directory.
# A signal waits until the program can tell it (testbed/base/interrupt.py), which is a moment.
PYTHONPATH=$root exec env --block-signal=INT,TERM,HUP "${venv:?}/bin/python" -P -m firstflight "$@"
