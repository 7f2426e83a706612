# shellcheck shell=sh
# The Python that the program runs on: the same on each machine, whatever the machine has itself.
# Its Debian packages, which roots/python/lock.toml names by SHA-256, are unpacked below the cache, by
# this shell and what any system has: sha256sum, tar, and one of each list of programs below.
# Sourced under `set -eu` with `here`, the work tree, and the arguments of run.sh. Leaves `python` behind.

# Raise it when what is unpacked of the same packages changes.
readonly FORMAT=1
readonly EXIT_MISSING=3 EXIT_STORAGE=4 EXIT_INTERRUPTED=130

say() {
  printf 'firstflight: %s\n' "$*" >&2
}

# give_up STATUS MESSAGE...
give_up() {
  status=$1
  shift
  say "$@"
  exit "$status"
}

# find_cache: sets `cache` and `python`, there or not.
find_cache() {
  cache=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/firstflight
  lock=${here:?}/roots/python/lock.toml
  case $cache in
    *[[:space:]:]*)
      give_up "$EXIT_MISSING" "the cache's path '$cache' holds a space or a colon, and Linux's makefiles" \
        "build in no such folder: set XDG_CACHE_HOME to one without."
      ;;
    /*) ;;
    *) give_up "$EXIT_MISSING" "XDG_CACHE_HOME is '$XDG_CACHE_HOME': it must be an absolute path." ;;
  esac
  key=$( (printf '%s\n' "$FORMAT"; list_packages) | sha256sum)
  folder=$cache/python/$(printf '%.16s' "$key")
  python=$folder/usr/bin/python
}

# list_packages: archive, path and SHA-256 of each locked package, a line each.
list_packages() {
  sed -n 's/.* archive = "\([^"]*\)", path = "\([^"]*\)",.* sha256 = "\([0-9a-f]*\)".*/\1 \2 \3/p' "$lock"
}

# find_mirror: prints the address of a mirror of Debian's main archive, without a final slash, where the
# environment, apt or debootstrap names one.
find_mirror() {
  if [ -n "${FIRSTFLIGHT_DEBIAN_MIRROR:-}" ]; then
    printf '%s\n' "${FIRSTFLIGHT_DEBIAN_MIRROR%/}"
    return
  fi
  cat /etc/apt/sources.list.d/*.sources /etc/apt/sources.list /etc/apt/sources.list.d/*.list \
    /usr/share/debootstrap/scripts/debian-common /usr/share/debootstrap/scripts/sid 2>/dev/null |
    sed -nE 's#^(URIs:|deb( +\[[^]]*\])?|[[:space:]]*default_mirror)[[:space:]]+"?(https?://[^ "]*/debian)/?"?( .*)?$#\3#p' |
    sed -n 1p
}

# list_addresses ARCHIVE PATH: where a package may be had, in the order of asking.
list_addresses() {
  if [ -n "${mirror:-}" ]; then
    printf '%s\n' "${mirror%/debian}/$1/$2"
  fi
  if [ -n "${FIRSTFLIGHT_DEBIAN_ARCHIVE:-}" ]; then
    taken=$(sed -n 's/^taken = "\(.*\)"$/\1/p' "$lock")
    printf '%s\n' "${FIRSTFLIGHT_DEBIAN_ARCHIVE%/}/archive/$1/$taken/$2"
  fi
}

# download ADDRESS FILE: by the first program that is there.
download() {
  if command -v curl >/dev/null; then
    curl --fail --silent --show-error --location --retry 3 --connect-timeout 20 --speed-time 30 \
      --speed-limit 1 --output "$2" -- "$1"
  elif command -v wget >/dev/null; then
    wget -q -T 30 -O "$2" "$1"
  elif [ -x /usr/lib/apt/apt-helper ]; then
    /usr/lib/apt/apt-helper -o Acquire::http::Timeout=30 download-file "$1" "$2" >/dev/null
  elif command -v python3 >/dev/null; then
    python3 -I -c 'import shutil, sys, urllib.request
with urllib.request.urlopen(sys.argv[1], timeout=30) as source, open(sys.argv[2], "wb") as target:
    shutil.copyfileobj(source, target)' "$1" "$2"
  elif command -v bash >/dev/null; then
    download_by_bash "$1" "$2"
  else
    say "nothing here downloads: install curl or wget, or import a pack: ./run.sh import FILE"
    return 1
  fi
}

# download_by_bash ADDRESS FILE: plain HTTP, of which a SHA-256 says all that TLS would.
download_by_bash() {
  # shellcheck disable=SC2016 # bash expands it
  timeout 300 bash -c '
    host=${1#http://}; path=/${host#*/}; host=${host%%/*}; port=${host#*:}
    [[ $1 == http://* ]] || { echo "bash cannot speak TLS: $1; install curl or wget" >&2; exit 1; }
    [[ $port != "$host" ]] || port=80
    exec 3<>"/dev/tcp/${host%:*}/$port" || exit 1
    printf "GET %s HTTP/1.0\r\nHost: %s\r\nConnection: close\r\n\r\n" "$path" "$host" >&3
    IFS=" " read -r -u 3 _ status _
    while IFS= read -r -u 3 line && [[ $line != $'"'\\\\r'"' ]]; do :; done
    [[ $status == 200 ]] && cat <&3 >"$2"' bash "$1" "$2"
}

# is_whole FILE SHA256
is_whole() {
  [ -f "$1" ] && [ "$(sha256sum <"$1")" = "$2  -" ]
}

# fetch_package ARCHIVE PATH SHA256: has the package in the cache of packages, or notes what was tried.
fetch_package() {
  file=$packages/$3.deb
  ! is_whole "$file" "$3" || return 0
  for address in $(list_addresses "$1" "$2"); do
    if said=$(download "$address" "$work/$3" 2>&1) && is_whole "$work/$3" "$3"; then
      mv -f -- "$work/$3" "$file"
      return 0
    fi
    printf '%s: %s\n' "$address" "${said:-its SHA-256 is not that of the lock}" >>"$work/problems"
  done
  rm -f -- "$work/$3"
  [ -n "${mirror:-}${FIRSTFLIGHT_DEBIAN_ARCHIVE:-}" ] || printf '%s\n' "$2" >>"$work/problems"
}

# unpack_package FILE: what it has in usr. A package is an archive of three members, of which the last is
# a tar (deb(5)); where nothing else reads .xz, the program that makes packages does.
unpack_package() {
  if command -v xz >/dev/null || command -v python3 >/dev/null; then
    control=$(tail -c +121 "$1" | head -c 10 | tr -d ' ')
    data=$((72 + 60 + control + control % 2))
    size=$(tail -c +$((data + 49)) "$1" | head -c 10 | tr -d ' ')
    tail -c +$((data + 61)) "$1" | head -c "$size" | decompress
  elif command -v dpkg-deb >/dev/null; then
    dpkg-deb --fsys-tarfile "$1"
  else
    say "nothing here reads .xz: install xz-utils"
    return 1
  fi | tar -xof - -C "$work"
}

decompress() {
  if command -v xz >/dev/null; then
    xz -dc
  else
    python3 -I -c 'import lzma, shutil, sys
shutil.copyfileobj(lzma.open(sys.stdin.buffer), sys.stdout.buffer)'
  fi
}

# write_interpreter FILE: what starts the interpreter by its own loader and libraries, whatever is here.
write_interpreter() {
  cat >"$1" <<END
#!/bin/sh
exec '$folder/usr/lib64/ld-linux-x86-64.so.2' --inhibit-cache --library-path \\
  '$folder/usr/lib/x86_64-linux-gnu' --argv0 "\$0" '$folder/usr/bin/python3' "\$@"
END
  chmod 755 "$1"
}

# take_pack FILE: the packages that a pack begins with, each of which is verified when it is used.
take_pack() {
  tar -xf "$1" -C "$work" packages ||
    give_up 2 "$1: no pack of a root, or a damaged one; get or export it again (./run.sh root export)"
  for file in "$work"/packages/*.deb; do
    mv -f -- "$file" "$packages/"
  done
}

# make_python: unpacks it aside and renames it: it is there as a whole or not at all.
make_python() {
  [ "$(uname -sm)" = "Linux x86_64" ] ||
    give_up "$EXIT_MISSING" "this machine is $(uname -sm): the virtual kernel needs Linux on x86-64."
  packages=$cache/roots/packages
  mkdir -p -- "$cache/python" "$packages" "$cache/logs" 2>/dev/null || true
  [ -w "$cache/python" ] || give_up "$EXIT_MISSING" "cannot write to $cache: set XDG_CACHE_HOME to a folder that you may write to."
  work=$cache/python/.new-$$
  mkdir -- "$work"
  pack=
  case "${1:-} ${2:-}" in
    "root import") pack=${3:-} ;;
    "import "*) pack=$2 ;;
  esac
  [ ! -f "$pack" ] || take_pack "$pack"
  mirror=$(find_mirror)
  count=$(list_packages | wc -l)
  say "Python: $count packages, the first time only"
  list_packages >"$work/list"
  running=0
  while read -r archive path sha256; do
    fetch_package "$archive" "$path" "$sha256" &
    running=$((running + 1))
    [ $((running % 6)) != 0 ] || wait
  done <"$work/list"
  wait
  if [ -e "$work/problems" ]; then
    say "packages of the program's Python are not to be had:"
    sort -- "$work/problems" >&2
    [ -n "${mirror:-}${FIRSTFLIGHT_DEBIAN_ARCHIVE:-}" ] ||
      say "no mirror of Debian is known here: set FIRSTFLIGHT_DEBIAN_MIRROR to the address of one, which" \
        "ends with /debian."
    give_up "$EXIT_MISSING" "Without a network: ./run.sh import FILE takes all from a pack (docs/roots.md)."
  fi
  while read -r _ _ sha256; do
    unpack_package "$packages/$sha256.deb" || give_up "$EXIT_STORAGE" "cannot unpack $packages/$sha256.deb to $cache; make room, or do what is said above"
  done <"$work/list"
  # Authorities in one file, for a machine that has none.
  cat -- "$work"/usr/share/ca-certificates/mozilla/*.crt >"$work/usr/share/ca-certificates/all.crt"
  write_interpreter "$work/usr/bin/python"
  rm -f -- "$work/list"
  if [ ! -e "$folder" ]; then
    mv -T -- "$work" "$folder" 2>/dev/null || [ -x "$python" ] ||
      give_up "$EXIT_STORAGE" "cannot write $folder; remove it and try again"
  fi
  rm -rf -- "$work"
  work=
}

# leave: nothing half-made stays; what ends the start is told apart by `beyond`, for git bisect.
leave() {
  status=$?
  [ -z "$work" ] || rm -rf -- "$work"
  [ "$status" = 0 ] || [ "$status" -gt 127 ] || exit $((${beyond:-0} + status))
}

work=
trap leave EXIT
trap 'say interrupted; exit $EXIT_INTERRUPTED' INT TERM HUP
find_cache
[ -x "$python" ] || make_python "$@"
trap - EXIT INT TERM HUP
