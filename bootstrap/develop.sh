#!/usr/bin/env bash
# Runs a command with everything that development needs: the locked tools come first on PATH.
# Usage: develop.sh [--without-kernel | --notebooks | --labs] COMMAND [ARGS]
set -euo pipefail

# shellcheck source=bootstrap/main.sh
source "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/main.sh"
level=kernel locked=requirements-dev
case ${1:-} in
  --without-kernel)
    level=programs
    shift
    ;;
  --notebooks)
    level=programs locked=requirements-notebooks
    shift
    ;;
  --labs)
    locked=requirements-notebooks
    shift
    ;;
esac
bootstrap "$level" "$locked"
cd -- "$root"
PATH=$venv/bin:$PATH PYTHONPATH=$root exec "$@"
