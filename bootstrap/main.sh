# shellcheck shell=bash
# The order of bootstrap: machine, packages, cache, Python, browser driver, C programs, kernel.
# Sourced under `set -euo pipefail`. `bootstrap MODE` (runtime, development, tools: development
# without a kernel, or notebooks: JupyterLab, without a kernel) leaves `python` and the
# FIRSTFLIGHT_* variables behind. It takes a fraction of a second when all parts are there.

shopt -s inherit_errexit

bootstrap=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
root=$(dirname -- "$bootstrap")

# shellcheck source=bootstrap/messages.sh
source "$bootstrap/messages.sh"
# shellcheck source=bootstrap/machine.sh
source "$bootstrap/machine.sh"
# shellcheck source=bootstrap/packages.sh
source "$bootstrap/packages.sh"
# shellcheck source=bootstrap/parts.sh
source "$bootstrap/parts.sh"

ensure_venv() {
  local locked interpreter key
  case $1 in
    runtime) locked=$bootstrap/requirements.txt ;;
    notebooks) locked=$bootstrap/requirements-notebooks.txt ;;
    *) locked=$bootstrap/requirements-dev.txt ;;
  esac
  interpreter=$(readlink -f /usr/bin/python3) # its name says the version
  key=$(hash_text "$interpreter" "$(<"$locked")" "$(<"$bootstrap/build-venv.sh")")
  ensure_part venv "$key" "Python environment" "$bootstrap/build-venv.sh" "$locked"
  venv=$part
  python=$venv/bin/python
}

ensure_js() {
  local files key
  cd -- "$root/testbed/client/chromium"
  mapfile -d '' files < <(find . \( -name node_modules -o -name dist -o -name __pycache__ \) -prune \
    -o -type f -not -name '*.py' -print0)
  key=$(hash_text "$(hash_files "${files[@]}")" "$(<"$bootstrap/build-js.sh")")
  ensure_part js "$key" "browser driver" "$bootstrap/build-js.sh" "${files[@]}" --
  export FIRSTFLIGHT_JS=$part
}

ensure_native() {
  local key
  cd -- "$root/testbed/native"
  key=$(hash_text "$(cc --version)" "$(hash_files ./*.[ch])" "$(<"$bootstrap/build-native.sh")")
  ensure_part native "$key" "C programs" "$bootstrap/build-native.sh" "$PWD"
  export FIRSTFLIGHT_NATIVE=$part
}

# The kernel has a key and a lock of its own (testbed/kernel/build.py). What is kept here is only
# where it was found, named by all that it is made from, which spares a start of Python.
ensure_kernel() {
  local files note kernel= start=$SECONDS
  cd -- "$root"
  mapfile -d '' files < <(find testbed/kernel -type f -not -name '*.pyc' -print0)
  note=$cache/kernels/found-$(hash_text "$(gcc --version)" "$(hash_files "${files[@]}")")
  [[ ! -r $note ]] || read -r kernel <"$note"
  [[ ! -x $kernel ]] || return 0
  kernel=$(PYTHONPATH=$root "$python" -P -m testbed.kernel.build)
  mkdir -p -- "$cache/kernels"
  printf '%s\n' "$kernel" >"$note.$$"
  mv -- "$note.$$" "$note"
  say "virtual kernel: ready in $((SECONDS - start)) s"
}

bootstrap() {
  local mode=$1 lists=("$bootstrap/packages-debian-12.txt") here=$PWD
  case $mode in development | tools) lists+=("$bootstrap/packages-debian-12-dev.txt") ;; esac
  check_machine /etc/os-release "$(uname -m)"
  [[ -n $untried ]] || ensure_packages "${lists[@]}"
  open_cache
  export FIRSTFLIGHT_CACHE=$cache
  ensure_venv "$mode"
  ensure_js
  ensure_native
  release_lock
  case $mode in runtime | development) ensure_kernel ;; esac
  cd -- "$here"
}
