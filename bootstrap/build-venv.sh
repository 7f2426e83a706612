#!/usr/bin/env bash
# Fills FOLDER with a Python environment from a lock file, ready to be renamed to FINAL.
# Usage: build-venv.sh LOCK FOLDER FINAL
set -euo pipefail

readonly lock=$1 folder=$2 final=$3

# Debian's own interpreter by its path: a version manager's may come first on PATH.
unset PYTHONPATH PYTHONHOME
/usr/bin/python3 -m venv -- "$folder"
# Hashes for every file, wheels only: nothing but what was locked gets in, no build script runs.
"$folder/bin/python" -m pip --disable-pip-version-check --no-input install \
  --require-hashes --no-deps --only-binary :all: -r "$lock"

# Scripts in bin/ name the folder that they were made in; the two differ in their last part only.
readonly old=/${folder##*/} new=/${final##*/}
grep -rlIZF -- "$old" "$folder/bin" "$folder/pyvenv.cfg" |
  xargs -0 -r sed -i "s|${old//./\\.}\b|$new|g"
