#!/usr/bin/env bash
# Runs a command with everything that development needs: the locked tools come first on PATH.
# Usage: develop.sh [--without-kernel] COMMAND [ARGS]
set -euo pipefail

# shellcheck source=bootstrap/main.sh
source "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/main.sh"
mode=development
if [[ ${1:-} == --without-kernel ]]; then
  mode=tools
  shift
fi
bootstrap "$mode"
cd -- "$root"
PATH=$venv/bin:$PATH PYTHONPATH=$root exec "$@"
