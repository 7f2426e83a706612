#!/usr/bin/env bash
# Sets up what recordings take and runs do not: node, npm and the browser driver that they build. Prints
# the driver's folder, and all else on standard error. With --find it sets nothing up, and fails where
# the driver is not there.
# Usage: recorder.sh [--find]    (called by testbed/setup/recording.py)
set -euo pipefail

# shellcheck source=bootstrap/main.sh
source "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/main.sh"

print_driver() {
  local files
  find_cache
  find_js
  [[ -d $part ]] && is_whole "$part" && printf '%s\n' "$part"
}

main() {
  local missing=()
  check_machine /etc/os-release "$(uname -m)"
  find_cache
  if [[ -z $untried ]]; then
    read_packages "$RECORDING_PROGRAMS"
    find_missing
  fi
  ((${#missing[@]} == 0)) || become_root
  open_cache
  install_missing "$RECORDING_PACKAGES_S"
  ensure_js
  release_lock
  printf '%s\n' "$FIRSTFLIGHT_JS"
}

if [[ ${1:-} == --find ]]; then
  print_driver
else
  main
fi
