#!/usr/bin/env bash
# Installs Debian packages as root, asks nothing, and starts or enables no service. While
# they are downloaded a signal ends it; then none does, for dpkg must not be stopped halfway.
# Usage: install-packages.sh PACKAGE...
set -euo pipefail

readonly policy=/usr/sbin/policy-rc.d
readonly mark='# firstflight: removed when the installation ends'
work=$(mktemp -d)

# A policy-rc.d that answers 101 keeps maintainer scripts from starting services (invoke-rc.d(8)).
# One that is there already is the machine's own and stays; one with our mark is a killed run's.
forbid_services() {
  if [[ -e $policy ]] && ! grep -qF "$mark" "$policy"; then
    return
  fi
  printf '#!/bin/sh\n%s\nexit 101\n' "$mark" >"$work/policy-rc.d"
  chmod 755 "$work/policy-rc.d"
  mv -- "$work/policy-rc.d" "$policy"
}

undo() {
  if [[ -e $policy ]] && grep -qF "$mark" "$policy"; then
    rm -f -- "$policy"
  fi
  rm -rf -- "$work"
}
trap undo EXIT

nginx_is_installed() {
  [[ $(dpkg-query --show --showformat='${db:Status-Status}' nginx 2>/dev/null) == installed ]]
}

apt_install() {
  DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 \
    -o Dpkg::Options::=--force-confold install --no-install-recommends "$@"
}

# install PACKAGE...: after it, signals end this script again.
install() {
  local had_nginx=
  ! nginx_is_installed || had_nginx=1
  apt_install --download-only "$@"
  trap '' INT TERM HUP
  apt_install "$@"
  # The lab starts its own nginx; one that nobody asked for must not come up with the machine.
  if [[ -z $had_nginx ]] && nginx_is_installed; then
    update-rc.d nginx disable
  fi
  trap - INT TERM HUP
}

main() {
  local package first=()
  for package in "$@"; do
    [[ $package == npm ]] || first+=("$package")
  done
  forbid_services
  apt-get -q -o DPkg::Lock::Timeout=300 update
  ((${#first[@]} == 0)) || install "${first[@]}"
  # Only now: where NodeSource's archive is configured, its nodejs brought npm and conflicts
  # with Debian's.
  if [[ " $* " == *' npm '* && ! -x /usr/bin/npm ]]; then
    install npm
  fi
}

main "$@" 1>&2
