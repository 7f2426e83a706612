#!/usr/bin/env bash
# Fills an image, step by step as the Dockerfile asks, with what bootstrap sets up on a machine.
# Usage: image.sh packages | python LOCK | kernel | finish      (as root, in the image)
set -euo pipefail
shopt -s extglob

# shellcheck source=bootstrap/main.sh
source "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../bootstrap/main.sh"

readonly PACKS=${XDG_CACHE_HOME:?}/packs HOME_FOLDER=/var/lib/firstflight
# An image's user, and the group that a user by another id is in (`--user ID:0`).
readonly ID=1000 GROUP=0

# install LIST...: installs what lists and declarations name.
install() {
  local packages least
  read_packages "$@"
  "${bootstrap:?}/install-packages.sh" "${packages[@]}"
}

# settle FOLDER: cuts times to whole seconds, which is what layers keep, so that no container finds other
# times than were listed and has to read all of a part.
settle() {
  /usr/bin/python3 -I -S -c '
import os, sys
for folder, _, names in os.walk(sys.argv[1]):
    for path in (os.path.join(folder, name) for name in names):
        whole = int(os.lstat(path).st_mtime)
        os.utime(path, (whole, whole), follow_symlinks=False)
' "$1"
}

packages() {
  # A headless browser draws on no graphics card, so it loads none of the drivers that its package
  # depends on, nor the compiler that they are built on, nor what that and they depend on: 220 MB.
  printf 'path-exclude=/usr/%s\n' 'share/doc/*' 'share/man/*' 'share/locale/*' \
    'lib/x86_64-linux-gnu/dri/*' 'lib/x86_64-linux-gnu/libLLVM*' 'lib/x86_64-linux-gnu/libz3*' \
    'lib/x86_64-linux-gnu/libicu*' 'lib/llvm-*' 'lib/chromium/libVkLayer*' \
    >/etc/dpkg/dpkg.cfg.d/firstflight
  install "$bootstrap/packages-debian-12.txt" "${RUN_PROGRAMS[@]}"
  apt-get clean
  rm -rf -- /var/lib/apt/lists/* /var/log/apt /var/log/dpkg.log
}

# python LOCK: the Python environment of a lock file, without what installed it and its packages' own
# tests: 150 MB.
python() {
  local level=programs name unneeded=()
  open_cache
  ensure_venv "$1"
  release_lock
  for name in setuptools pip; do # nbgrader, say, does need one
    grep -q "^$name==" "$bootstrap/$1.txt" || unneeded+=("$name")
  done
  "${venv:?}/bin/python" -m pip --disable-pip-version-check uninstall --yes --quiet "${unneeded[@]}"
  find "$venv/lib" -name tests -type d -prune -exec rm -rf -- {} +
  settle "$venv"
  rm -rf -- "${venv:?}/$CONTENTS"
  write_contents "$venv"
  rm -f -- "$cache/bootstrap.lock" # root's; a container's user makes its own
}

# kernel: builds kernel and C programs, or puts aside the pack that was handed in.
kernel() {
  local pack packed=("$root"/docker/packs/!(README.md))
  mkdir -p -- "$PACKS"
  if [[ -e ${packed[0]} ]]; then
    for pack in "${packed[@]}"; do
      say "taken from ${pack##*/}, not built: kernel and C programs"
      cp -- "$pack" "$PACKS"
    done
    return
  fi
  install "$BUILD_PACKAGES"
  open_cache
  ensure_native
  release_lock
  begin_kernel
  await_kernel
  rm -rf -- "$cache/kernels/sources" "$cache/roots" "$cache/toolchains"
}

# finish: all that is built is listed as a container finds it, and belongs to who runs it.
finish() {
  local pack folder
  for pack in "$PACKS"/*; do
    [[ ! -e $pack ]] || "$root/run.sh" kernel import "$pack"
  done
  rm -rf -- "$PACKS"
  find_cache
  settle "$cache/kernels"
  settle "$cache/native"
  bootstrap kernel
  "$venv/bin/python" -m compileall -q "$root/analysis" "$root/firstflight" "$root/testbed"

  getent passwd "$ID" >/dev/null ||
    useradd --uid "$ID" --gid "$GROUP" --no-create-home --home-dir "$HOME_FOLDER" firstflight
  mkdir -p -- "$HOME_FOLDER" "$root/results"
  for folder in "$HOME_FOLDER" "$root/results" "$cache" "$cache"/*/; do
    chown "$ID:$GROUP" -- "$folder"
    chmod 2775 -- "$folder"
  done
  # Nobody becomes another user in here.
  find / -xdev -perm /6000 -type f -exec chmod a-s -- {} +
}

"$@"
