# shellcheck shell=bash
# Which machines bootstrap knows. An untried one is refused by its name, never half set up.

# os_release_value FILE KEY: one value of an os-release(5) file, without its quotes.
os_release_value() {
  local key value
  while IFS='=' read -r key value; do
    if [[ $key == "$2" ]]; then
      value=${value#[\"\']}
      printf '%s' "${value%[\"\']}"
      return
    fi
  done <"$1"
}

# check_machine OS_RELEASE ARCHITECTURE: returns when this is a Debian 12 or 13 on x86-64, refuses others.
# FIRSTFLIGHT_UNTRIED=1 goes on elsewhere; `untried` then says that the package list does not hold.
check_machine() {
  local id='' version='' name=''
  untried=
  if [[ -r $1 ]]; then
    id=$(os_release_value "$1" ID)
    version=$(os_release_value "$1" VERSION_ID)
    name=$(os_release_value "$1" PRETTY_NAME)
  fi
  if [[ $2 != x86_64 ]]; then
    refuse "this machine is $2: the virtual kernel (User-Mode Linux) needs x86-64."
  fi
  # The packages have the same names in both.
  [[ $id == debian && $version == 1[23] ]] && return
  name=${name:-an unknown system}
  if [[ ${FIRSTFLIGHT_UNTRIED:-} != 1 ]]; then
    refuse "${name}: tried on Debian 12 and 13. Run in such a machine or container," \
      "or set FIRSTFLIGHT_UNTRIED=1 and install by hand what" \
      "bootstrap/packages-debian-12.txt and packages-debian-12-build.txt name."
  fi
  untried=1
}
