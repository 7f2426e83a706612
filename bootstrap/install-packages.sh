#!/usr/bin/env bash
# Installs Debian packages as root, asks nothing, and starts or enables no service. While
# they are downloaded a signal ends it; then none does, for dpkg must not be stopped halfway.
# Where another of its kind or another apt is at work, as a cloud machine's own is after its start, it
# waits its turn.
# Usage: install-packages.sh PACKAGE...
set -euo pipefail

readonly policy=/usr/sbin/policy-rc.d
readonly mark='# firstflight: removed when the installation ends'
readonly PATIENCE_S=300
# Packages, and the services that they bring.
readonly SERVICES=(munge:munge nginx:nginx openssh-server:ssh slurmctld:slurmctld slurmd:slurmd)
# One at a time on a machine: the first to end would take the policy from the others.
exec {turn}<"${policy%/*}"
flock --timeout 1800 "$turn"
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

is_installed() {
  [[ $(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

# ask_apt ARG...: apt-get; again, for up to PATIENCE_S, while another holds the lock of the lists or of
# the downloads. apt waits by itself for dpkg's lock alone (apt.conf(5), DPkg::Lock::Timeout).
ask_apt() {
  local status started=$SECONDS
  while true; do
    status=0
    DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -q -o "DPkg::Lock::Timeout=$PATIENCE_S" "$@" \
      2>"$work/errors" || status=$?
    cat -- "$work/errors" >&2
    if ((status == 0 || SECONDS - started >= PATIENCE_S)) ||
      ! grep -q '^E: Could not get lock ' "$work/errors"; then
      return "$status"
    fi
    echo "waiting for another apt" >&2
    sleep 3
  done
}

apt_install() {
  ask_apt -y -o Dpkg::Options::=--force-confold install --no-install-recommends "$@"
}

# install PACKAGE...: after it, signals end this script again.
install() {
  local service absent=()
  for service in "${SERVICES[@]}"; do
    is_installed "${service%:*}" || absent+=("$service")
  done
  apt_install --download-only "$@"
  trap '' INT TERM HUP
  apt_install "$@"
  # Labs and tests start their own; one that nobody asked for must not come up with the machine.
  for service in "${absent[@]}"; do
    ! is_installed "${service%:*}" || update-rc.d "${service#*:}" disable ||
      echo "it may start with the machine; to prevent that: systemctl disable ${service#*:}"
  done
  trap - INT TERM HUP
}

main() {
  local package first=()
  for package in "$@"; do
    [[ $package == npm ]] || first+=("$package")
  done
  forbid_services
  ask_apt update
  ((${#first[@]} == 0)) || install "${first[@]}"
  # Only now: where NodeSource's archive is configured, its nodejs brought npm and conflicts
  # with Debian's.
  if [[ " $* " == *' npm '* && ! -x /usr/bin/npm ]]; then
    install npm
  fi
}

main "$@" 1>&2
