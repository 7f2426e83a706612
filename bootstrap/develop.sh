#!/usr/bin/env bash
# Runs a command with everything that development needs: the locked tools come first on PATH.
# Usage: develop.sh [--without-kernel | --notebooks] COMMAND [ARGS]
set -euo pipefail

# shellcheck source=bootstrap/main.sh
source "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/main.sh"
mode=development
case ${1:-} in
  --without-kernel)
    mode=tools
    shift
    ;;
  --notebooks)
    mode=notebooks
    shift
    ;;
esac
bootstrap "$mode"
cd -- "$root"
PATH=$venv/bin:$PATH PYTHONPATH=$root exec "$@"
