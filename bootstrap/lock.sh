#!/usr/bin/env bash
# Rewrites the lock files from requirements*.in and the driver's package.json: exact versions, each file's hash.
# The hashes are those of all published files of a version, so one lock serves every Python that
# the wheels are for. No server's address is written.
# Usage: bootstrap/develop.sh bootstrap/lock.sh [PIP-COMPILE ARGS, such as --upgrade]
set -euo pipefail

cd -- "$(dirname -- "${BASH_SOURCE[0]}")"
export CUSTOM_COMPILE_COMMAND='make lock'
lock() {
  python -m piptools compile --quiet --no-config --generate-hashes --strip-extras \
    --no-emit-options --no-emit-index-url --no-emit-find-links --no-emit-trusted-host \
    --output-file "$1.txt" "${@:2}" "$1.in"
}
for name in requirements requirements-{dev,notebooks,artifact,many,cluster}; do
  lock "$name" --allow-unsafe "$@"
done
# There is no wheel of connection-pool, and Snakemake wants it without importing it.
lock requirements-snakemake --unsafe-package connection-pool "$@"
cd ../wings/pages/recorder/puppeteer
npm install --package-lock-only --ignore-scripts --omit-lockfile-registry-resolved --no-audit --no-fund
