#!/usr/bin/env bash
# Fills FOLDER with copies of the named files, their npm packages from package-lock.json, and
# what `npm run build` makes of them.
# Usage: build-js.sh FILE... -- FOLDER FINAL     (files relative to the working directory)
set -euo pipefail

files=()
while [[ $1 != -- ]]; do
  files+=("$1")
  shift
done
readonly folder=$2

cp --parents -- "${files[@]}" "$folder"
cd -- "$folder"
# `ci` installs what the lock names, checked by its hashes; no package runs a script of its own.
npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier
npm run build
