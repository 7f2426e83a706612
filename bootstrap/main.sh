# shellcheck shell=bash
# The order of bootstrap: machine, packages, cache, Python, browser driver, C programs, kernel.
# Sourced under `set -euo pipefail`. `bootstrap LEVEL [LOCK]` sets up what LEVEL names: `python` (the
# Python environment alone, and no package), `programs` (all but a kernel) or `kernel`; LOCK is the
# Python environment's, and a run's own by default. It leaves `python` and the FIRSTFLIGHT_* variables
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
readonly VENV_S=60 JS_S=20 NATIVE_S=2

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
  ensure_part venv "$key" "Python environment" "$VENV_S" "$bootstrap/build-venv.sh" "$locked"
  venv=$part
  python=$venv/bin/python
}

ensure_js() {
  local files key
  cd -- "$root/testbed/client/chromium"
  mapfile -d '' files < <(find . \( -name node_modules -o -name dist -o -name __pycache__ \) -prune \
    -o -type f -not -name '*.py' -print0)
  key=$(hash_text "$(hash_files "${files[@]}")" "$(<"$bootstrap/build-js.sh")")
  ensure_part js "$key" "browser driver" "$JS_S" "$bootstrap/build-js.sh" "${files[@]}" --
  export FIRSTFLIGHT_JS=$part
}

ensure_native() {
  local key
  cd -- "$root/testbed/native"
  key=$(hash_text "$(cc --version)" "$(hash_files ./*.[ch])" "$(<"$bootstrap/build-native.sh")")
  ensure_part native "$key" "C programs" "$NATIVE_S" "$bootstrap/build-native.sh" "$PWD"
  export FIRSTFLIGHT_NATIVE=$part
}

# The kernel has a key and a lock of its own (testbed/kernel/build.py), which also holds its hash
# against the file. What is kept here is only where it was found and how it looked then, named by
# all that it is made from, which spares a start of Python.
ensure_kernel() {
  local files note kernel='' start=$SECONDS
  cd -- "$root"
  mapfile -d '' files < <(find testbed/kernel -type f -not -name '*.pyc' -print0)
  note=$cache/kernels/found-$(hash_text "$(gcc --version)" "$(hash_files "${files[@]}")")
  [[ ! -r $note ]] || read -r kernel <"$note" || true
  [[ ! -x $kernel || $(kernel_note "$kernel") != "$(<"$note")" ]] || return 0
  mkdir -p -- "$cache/kernels"
  unfinished=$note.$$
  attended '' 0 "$unfinished" \
    env PYTHONPATH="$root" "$python" -P -m testbed.kernel.build || exit "$?"
  kernel_note "$(<"$unfinished")" >"$unfinished.whole"
  mv -- "$unfinished.whole" "$note"
  rm -f -- "$unfinished"
  unfinished=
  say "virtual kernel: ready in $((SECONDS - start)) s"
}

# kernel_note PATH: where a kernel is, and how all files beside it look.
kernel_note() {
  printf '%s\n' "$1"
  list_files "${1%/*}"
}

bootstrap() {
  local level=$1 locked=${2:-requirements} here=$PWD lists=("$bootstrap/packages-debian-12.txt")
  check_machine /etc/os-release "$(uname -m)"
  [[ $locked != requirements-dev ]] || lists+=("$bootstrap/packages-debian-12-dev.txt")
  [[ -n $untried || $level == python ]] || ensure_packages "${lists[@]}"
  open_cache
  export FIRSTFLIGHT_CACHE=$cache
  ensure_venv "$locked"
  if [[ $level != python ]]; then
    ensure_js
    ensure_native
  fi
  release_lock
  [[ $level != kernel ]] || ensure_kernel
  cd -- "$here"
}
