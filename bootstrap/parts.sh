# shellcheck shell=bash
# Parts of the cache: each in a folder named by the hash of what it was built from, built
# aside under a lock and then renamed, so that a part is there as a whole or not at all.

# hash_text TEXT...: 16 hex digits that name these texts.
hash_text() {
  local digest
  digest=$(printf '%s\n' "$@" | sha256sum)
  printf '%s' "${digest:0:16}"
}

# hash_files FILE...: 16 hex digits that name these files, by paths as given and contents.
hash_files() {
  local sums
  sums=$(sha256sum -- "$@" | LC_ALL=C sort)
  hash_text "$sums"
}

# open_cache: sets `cache`, which exists and can be written afterwards.
open_cache() {
  cache=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/firstflight
  [[ $cache == /* ]] || refuse "XDG_CACHE_HOME is '$XDG_CACHE_HOME': it must be an absolute path."
  if ! mkdir -p -- "$cache/logs" 2>/dev/null || [[ ! -w $cache || ! -w $cache/logs ]]; then
    refuse "cannot write to $cache: set XDG_CACHE_HOME to a folder that you may write to."
  fi
}

# take_lock: from here on no other bootstrap builds in this cache, and `testbed clean`, which locks
# the folder itself, does not empty it.
take_lock() {
  [[ -z ${lock:-} ]] || return 0
  exec {in_use}<"$cache" {lock}>"$cache/bootstrap.lock"
  flock -s "$in_use"
  if ! flock -n "$lock"; then
    say "waiting for another bootstrap in $cache"
    flock "$lock"
  fi
}

release_lock() {
  [[ -n ${lock:-} ]] || return 0
  exec {lock}>&- {in_use}<&-
  lock=
}

# ensure_part NAME KEY TITLE COMMAND...: sets `part` to the folder $cache/NAME/KEY. Builds it
# if need be with `COMMAND... FOLDER FINAL`: FOLDER is to be filled, FINAL is its later name.
ensure_part() {
  local name=$1 key=$2 title=$3 start=$SECONDS log new
  shift 3
  part=$cache/$name/$key
  [[ ! -d $part ]] || return 0
  take_lock
  [[ ! -d $part ]] || return 0 # another bootstrap built it while this one waited
  log=$cache/logs/$name.log
  new=$cache/$name/.new-$$
  rm -rf -- "$cache/$name"/.new-* # left by a killed bootstrap: the lock is ours
  mkdir -p -- "$new"
  say "$title: building"
  if ! "$@" "$new" "$part" >"$log" 2>&1 </dev/null; then
    tail -n 25 -- "$log" >&2
    rm -rf -- "$new"
    say "$title: the build failed; all of its output is in $log"
    exit 4
  fi
  mv -T -- "$new" "$part"
  say "$title: ready in $((SECONDS - start)) s"
}
