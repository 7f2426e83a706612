# shellcheck shell=bash
# Debian packages: what is missing, and its installation as root or through sudo.

# About how long their installation takes, with what has to be downloaded.
readonly PACKAGES_S=120

# list_declared: the packages of the programs that trials run, one a line, as clients and
# testbed/setup/programs.py declare them: packages="nodejs >= 18, npm".
list_declared() {
  sed -nE 's/^.*\<packages="([^"]+)".*$/\1/p' "${root:?}/testbed/setup/programs.py" \
    "$root"/testbed/client/*.py "$root"/testbed/client/*/*.py | sed 's/, */\n/g' | sort -u
}

# read_packages FILE...: sets `packages` (names, the declared ones too) and `least` (name -> least
# version).
read_packages() {
  local line name sign version
  packages=()
  declare -gA least=()
  while IFS= read -r line; do
    read -r name sign version <<<"${line%%#*}"
    [[ -n $name ]] || continue
    packages+=("$name")
    [[ $sign != '>=' ]] || least[$name]=$version
  done < <(cat -- "$@" && list_declared)
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

# refuse_missing: names all of `missing` and how to install them.
refuse_missing() {
  refuse "missing Debian packages: ${missing[*]}"$'\n'"As root, run this once:"$'\n' \
    "  apt-get update && apt-get install --no-install-recommends ${missing[*]}"
}

# require_packages PACKAGE...: refuses where one is missing, and installs nothing.
require_packages() {
  packages=("$@")
  declare -gA least=()
  find_missing
  ((${#missing[@]} == 0)) || refuse_missing
}

# ensure_packages FILE...: everything the lists name is installed afterwards, or it refuses.
ensure_packages() {
  local start=$SECONDS as_root=() log spanned
  read_packages "$@"
  find_missing
  ((${#missing[@]})) || return 0
  if (($(id -u) != 0)); then
    # A password is asked for here: what installs has no terminal.
    if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || { [[ -t 0 && -t 2 ]] && sudo -v; }; }
    then
      as_root=(sudo -n)
    else
      refuse_missing
    fi
  fi
  open_cache
  log=$cache/logs/packages.log
  span "$PACKAGES_S"
  say "installing Debian packages, about $spanned: ${missing[*]}; log: $log"
  spared="waiting until the packages are installed: stopped halfway they would not work"
  if ! attended "Debian packages" "$PACKAGES_S" "$log" \
    "${as_root[@]}" "${bootstrap:?}/install-packages.sh" "${missing[@]}"; then
    tail -n 25 -- "$log" >&2
    refuse "the packages could not be installed; all that was said is in $log"
  fi
  spared=
  find_missing
  ((${#missing[@]} == 0)) || refuse "still missing after the installation: ${missing[*]}"
  say "packages installed in $((SECONDS - start)) s"
}
