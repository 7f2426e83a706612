# shellcheck shell=bash
# The order of bootstrap: machine, packages, cache, Python, C programs; and beside them the kernel. For development there is the recorder's browser driver, too; for all
# others the first recording sets it up (recorder.sh).
# Sourced under `set -euo pipefail`. `bootstrap LEVEL [LOCK]` sets up what LEVEL names: `python` (the
# Python environment alone, and no package), `programs` (all but a kernel) or `kernel`; LOCK is the
# Python environment's, and a run's own by default. It leaves `venv` and the FIRSTFLIGHT_* variables
# behind, and takes a fraction of a second when all parts are there.

shopt -s inherit_errexit

# The system's programs come first: what is found does not depend on the caller's PATH, which may
# lack /usr/sbin, or have another node.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin${PATH:+:$PATH}

bootstrap=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
root=$(dirname -- "$bootstrap")

# shellcheck source=bootstrap/messages.sh
source "$bootstrap/messages.sh"
# shellcheck source=bootstrap/work.sh
source "$bootstrap/work.sh"
# shellcheck source=bootstrap/machine.sh
source "$bootstrap/machine.sh"
# shellcheck source=bootstrap/packages.sh
source "$bootstrap/packages.sh"
# shellcheck source=bootstrap/parts.sh
source "$bootstrap/parts.sh"

# About how many seconds each part takes to build; the kernel's build tells its own.
readonly VENV_S=60 JS_S=20
readonly BUILD_PACKAGES=$bootstrap/packages-debian-12-build.txt
# Debian's Python and its standard library: a kernel does not wait for the Python environment.
readonly DEBIAN_PYTHON=(env PYTHONPATH="$root" /usr/bin/python3 -P -S -m)
readonly KERNEL_BUILD=("${DEBIAN_PYTHON[@]}" testbed.kernel.build.cache)
readonly NATIVE_BUILD=("${DEBIAN_PYTHON[@]}" testbed.kernel.build.native)

# answer ARG...: answers help, version and wrong words before anything is set up, and ends; else it
# sets `level` to what the command needs. Debian's Python is all that it takes.
answer() {
  local said status=0
  if [[ ! -x /usr/bin/python3 ]]; then
    [[ ${1:-run} == run ]] ||
      refuse "Debian's Python is missing. As root, run this once: apt-get install python3-venv"
    level=kernel
    return
  fi
  said=$(/usr/bin/python3 -I -S "$root/firstflight/usage.py" "$@" 2>&1) || status=$?
  level=${said#needs }
  [[ $said == "$level" ]] || return 0
  if ((status == 0)); then
    printf '%s\n' "$said"
  else
    printf '%s\n' "$said" >&2
  fi
  exit "$status"
}

ensure_venv() {
  local locked=$bootstrap/$1.txt interpreter key
  interpreter=$(readlink -f /usr/bin/python3) # its name says the version
  key=$(hash_text "$interpreter" "$(<"$locked")" "$(<"$bootstrap/build-venv.sh")")
  find_part venv "$key"
  [[ -d $part || $level != python ]] || require_packages ca-certificates python3-venv
  ensure_part "Python environment" "$VENV_S" "$bootstrap/build-venv.sh" "$locked"
  # shellcheck disable=SC2034 # for those who start Python: run.sh, develop.sh
  venv=$part
}

# ensure_artifact: what checks the artifact's own papers, apart from what everything else is tested with.
ensure_artifact() {
  ensure_venv requirements-artifact
  export FIRSTFLIGHT_ARTIFACT=$venv
}

# find_js: sets `part` to the folder of the browser driver, there or not, and `files` to its sources,
# relative to the working directory, which it changes to theirs.
find_js() {
  cd -- "$root/testbed/client/chromium"
  mapfile -d '' files < <(find . \( -name node_modules -o -name dist -o -name __pycache__ \) -prune \
    -o -type f -not -name '*.py' -print0)
  find_part js "$(hash_text "$(hash_files "${files[@]}")" "$(<"$bootstrap/build-js.sh")")"
}

ensure_js() {
  local files
  find_js
  ensure_part "browser driver" "$JS_S" "$bootstrap/build-js.sh" "${files[@]}" --
  export FIRSTFLIGHT_JS=$part
}

# ensure_native: the C programs, which have a key and a lock of their own (testbed/kernel/build/native.py).
ensure_native() {
  FIRSTFLIGHT_NATIVE=$("${NATIVE_BUILD[@]}") || exit
  export FIRSTFLIGHT_NATIVE
}

# find_kernel: fails unless the cache has the kernel. A kernel has a key and a lock of its own
# (testbed/kernel/build/cache.py), which also holds its hash against the file. What is kept here is only where
# it was found and how it looked then, named by all that it is made from, which spares a start of Python.
find_kernel() {
  local files note kernel=''
  cd -- "$root"
  mapfile -d '' files < <(find testbed/kernel testbed/root roots/build -type f -not -name '*.pyc' -print0)
  note=$cache/kernels/found-$(hash_files "${files[@]}")
  [[ ! -r $note ]] || read -r kernel <"$note" || true
  [[ ! -x $kernel || $(kernel_note "$kernel") != "$(<"$note")" ]] || return 0
  kernel=$("${KERNEL_BUILD[@]}" --find 2>/dev/null) || return 1
  mkdir -p -- "$cache/kernels"
  kernel_note "$kernel" >"$note.$$"
  mv -- "$note.$$" "$note"
}

# kernel_note PATH: where a kernel is, and how all files beside it look.
kernel_note() {
  printf '%s\n' "$1"
  list_files "${1%/*}"
}

# begin_kernel [WORD]...: the words go to the build.
begin_kernel() {
  began=$SECONDS
  begin_beside "${KERNEL_BUILD[@]}" "$@" >/dev/null
}

await_kernel() {
  local status=0
  await_beside || status=$?
  if ((status)); then
    say "virtual kernel: not built; what it lacked is said above"
    exit "$status"
  fi
  find_kernel || true # to note where it is
  say "virtual kernel: ready in $((SECONDS - began)) s"
}

# find_packages: sets `missing`. What builds a kernel is missing only where one is to be built, and for
# development.
find_packages() {
  local list=$bootstrap/packages-debian-12 lists
  lists=("$list.txt")
  if [[ $locked == requirements-dev ]]; then
    lists+=("$list-dev.txt" "$BUILD_PACKAGES" "$RECORDING_PROGRAMS")
  elif [[ -n $building ]]; then
    lists+=("$BUILD_PACKAGES")
  fi
  read_packages "${lists[@]}" "${RUN_PROGRAMS[@]}"
  find_missing
}

bootstrap() {
  local level=$1 locked=${2:-requirements} here=$PWD building='' began missing=() about=$PACKAGES_S
  unset FIRSTFLIGHT_JS # another tree's, perhaps
  check_machine /etc/os-release "$(uname -m)"
  find_cache
  [[ ! -e $cache ]] || open_cache
  [[ $level != kernel ]] || find_kernel || building=kernel
  [[ -n $untried || $level == python ]] || find_packages
  ((${#missing[@]} == 0)) || become_root
  open_cache
  export FIRSTFLIGHT_CACHE=$cache
  if [[ -n $building ]]; then
    install_missing "$BUILD_PACKAGES_S" "$BUILD_PACKAGES"
    # What is compiled is kept for tests of kernels of one's own.
    if [[ $locked == requirements-dev ]]; then begin_kernel --keep-objects; else begin_kernel; fi
  fi
  [[ $locked != requirements-dev ]] || about=$((PACKAGES_S + RECORDING_PACKAGES_S))
  install_missing "$about"
  [[ $locked != requirements-dev ]] || ensure_artifact
  ensure_venv "$locked"
  [[ $locked != requirements-dev ]] || ensure_js
  [[ $level == python ]] || ensure_native
  release_lock
  [[ -z $building ]] || await_kernel
  cd -- "$here"
}
