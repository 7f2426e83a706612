# shellcheck shell=bash
# Debian packages: what is missing, and its installation as root or through sudo.

# About how long their installation takes, with what has to be downloaded: of those of runs, of
# those that build a kernel, and of those of recordings.
readonly PACKAGES_S=80 BUILD_PACKAGES_S=40 RECORDING_PACKAGES_S=80

# Where the programs of trials are declared, and those that only recordings take.
readonly RUN_PROGRAMS=("${root:?}"/testbed/setup/programs.py "$root"/testbed/client/{,*/}*.py)
readonly RECORDING_PROGRAMS=$root/testbed/setup/recording.py

# list_packages FILE...: the packages that they name, one a line: lists, and Python modules that declare
# programs, each with packages="nodejs >= 18, npm".
list_packages() {
  local file
  for file in "$@"; do
    if [[ $file == *.py ]]; then
      sed -nE 's/^.*\<packages="([^"]+)".*$/\1/p' "$file" | sed 's/, */\n/g'
    else
      cat -- "$file"
    fi
  done
}

# read_packages FILE...: sets `packages` (names, each once) and `least` (name -> least version).
read_packages() {
  local line name sign version
  packages=()
  declare -gA least=()
  while IFS= read -r line; do
    read -r name sign version <<<"${line%%#*}"
    [[ -n $name && " ${packages[*]} " != *" $name "* ]] || continue
    packages+=("$name")
    [[ $sign != '>=' ]] || least[$name]=$version
  done < <(list_packages "$@")
}

# brought_by_another PACKAGE: NodeSource's nodejs carries npm and conflicts with Debian's npm.
brought_by_another() {
  [[ $1 == npm && -x /usr/bin/npm ]]
}

# find_missing: sets `missing` to those of `packages` that are absent or too old.
find_missing() {
  local name state version
  declare -A installed=()
  missing=()
  while read -r name state version; do
    [[ $state != installed ]] || installed[$name]=$version
  done < <(dpkg-query --show \
    --showformat='${Package} ${db:Status-Status} ${Version}\n' "${packages[@]}" 2>/dev/null || true)
  for name in "${packages[@]}"; do
    version=${installed[$name]:-}
    if [[ -n $version ]]; then
      [[ -n ${least[$name]:-} ]] || continue
      ! dpkg --compare-versions "$version" ge "${least[$name]}" || continue
    fi
    brought_by_another "$name" || missing+=("$name")
  done
}

# refuse_missing: names all of `missing` and how to install them, or do without.
refuse_missing() {
  local chosen instead=
  choose_missing "$BUILD_PACKAGES"
  ((${#chosen[@]} == 0)) || instead=$'\n'"Or import what is built elsewhere, which takes none of \
${chosen[*]}:"$'\n'"  ./run.sh kernel import FILE"
  refuse "missing Debian packages: ${missing[*]}"$'\n'"As root, run this once:"$'\n' \
    "  apt-get update && apt-get install --no-install-recommends ${missing[*]}$instead"
}

# require_packages PACKAGE...: refuses where one is missing, and installs nothing.
require_packages() {
  packages=("$@")
  declare -gA least=()
  find_missing
  ((${#missing[@]} == 0)) || refuse_missing
}

# become_root: sets `as_root` to what comes before a command of root's, or refuses for `missing`.
become_root() {
  as_root=()
  (($(id -u) != 0)) || return 0
  # A password is asked for here: what installs has no terminal.
  if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || { [[ -t 0 && -t 2 ]] && sudo -v; }; }
  then
    as_root=(sudo -n)
  else
    refuse_missing
  fi
}

# choose_missing [FILE]: sets `chosen` to those of `missing` that FILE names, or to all.
choose_missing() {
  chosen=("${missing[@]}")
  [[ -z ${1:-} ]] || mapfile -t chosen < <(printf '%s\n' "${missing[@]}" |
    grep -Fxf <(sed -nE 's/^([a-z0-9][^ ]*) .*$/\1/p' "$1"))
}

# install_missing SECONDS [FILE]: installs those of `missing` that FILE names, or all, or it refuses.
# SECONDS is about how long that takes.
install_missing() {
  local about=$1 start=$SECONDS chosen log spanned
  choose_missing "${@:2}"
  ((${#chosen[@]})) || return 0
  log=$cache/logs/packages.log
  span "$about"
  say "installing Debian packages, about $spanned: ${chosen[*]}; log: $log"
  spared="waiting until the packages are installed: stopped halfway they would not work"
  if ! attended "Debian packages" "$about" "$log" \
    "${as_root[@]}" "${bootstrap:?}/install-packages.sh" "${chosen[@]}"; then
    tail -n 25 -- "$log" >&2
    refuse "the packages could not be installed; all that was said is in $log"
  fi
  spared=
  find_missing
  choose_missing "${@:2}"
  ((${#chosen[@]} == 0)) || refuse "still missing after the installation: ${chosen[*]}"
  say "packages installed in $((SECONDS - start)) s"
}
