# shellcheck shell=bash
# Parts of the cache: each in a folder named by the hash of what it was built from, built
# aside under a lock and then renamed, so that a part is there as a whole or not at all. What was
# in it then is written down inside, so that a file that was damaged later is found at a start.

# Raise it when parts are to be built anew although nothing that they are made from has changed.
readonly FORMAT=2
# Where a part says what is in it, and how to find all files but those.
readonly CONTENTS=.contents
readonly FILES=(-path "./$CONTENTS" -prune -o -type d -o)

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

# find_cache: sets `cache`, whether it exists or not.
find_cache() {
  cache=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/firstflight
  [[ $cache == /* ]] || refuse "XDG_CACHE_HOME is '$XDG_CACHE_HOME': it must be an absolute path."
}

# open_cache: sets `cache`, which exists and can be written afterwards.
open_cache() {
  find_cache
  [[ $cache != *[[:space:]:]* ]] || refuse "the cache's path '$cache' holds a space or a colon, and" \
    "Linux's makefiles build in no such folder: set XDG_CACHE_HOME to one without."
  if ! mkdir -p -- "$cache/logs" 2>/dev/null || [[ ! -w $cache || ! -w $cache/logs ]]; then
    refuse "cannot write to $cache: set XDG_CACHE_HOME to a folder that you may write to."
  fi
}

# require_ours FILE: refuses a file that cannot be written.
require_ours() {
  [[ ! -e $1 || -w $1 ]] ||
    refuse "cannot write $1, which is another user's: set XDG_CACHE_HOME to a folder of your own."
}

# take_lock: from here on no other bootstrap builds in this cache, and `testbed clean`, which locks
# the folder itself, does not empty it.
take_lock() {
  [[ -z ${lock:-} ]] || return 0
  require_ours "$cache/bootstrap.lock"
  exec {in_use}<"$cache" {lock}>"$cache/bootstrap.lock"
  flock -s "$in_use"
  if ! flock -n "$lock"; then
    say "waiting for another bootstrap in $cache"
    until
      flock -w "$TELL_EVERY_S" "$lock" &
      wait "$!"
    do
      say "still waiting for another bootstrap in $cache"
    done
  fi
}

release_lock() {
  [[ -n ${lock:-} ]] || return 0
  exec {lock}>&- {in_use}<&-
  lock=
}

# list_files FOLDER: size, time, mode and name of each file, which tell at little cost that none
# was touched. Sorted, for a copied folder has its files in another order.
list_files() {
  (cd -- "$1" && find . "${FILES[@]}" -printf '%s %T@ %m %l %p\n' | LC_ALL=C sort)
}

# list_modes FOLDER: what the contents of files do not tell: who may run them, where links lead.
list_modes() {
  (cd -- "$1" && find . "${FILES[@]}" -printf '%p %m %l\n' | LC_ALL=C sort)
}

# write_contents FOLDER: writes down what is in it.
write_contents() {
  mkdir -- "$1/$CONTENTS" &&
    (cd -- "$1" && find . "${FILES[@]}" -type f -print0 | LC_ALL=C sort -z |
      xargs -0 -r sha256sum --) \
      >"$1/$CONTENTS/sha256" &&
    list_modes "$1" >"$1/$CONTENTS/modes" &&
    list_files "$1" >"$1/$CONTENTS/listing"
}

# is_whole FOLDER: whether each file is as it was written down; else `damaged` names one that is not.
# A file that came in addition is none of the part's. Where only times differ, as in a copied or
# restored cache, or nobody has looked yet, as at imported programs, the contents are read once.
is_whole() {
  local contents=$1/$CONTENTS
  damaged=$CONTENTS
  [[ -s $contents/sha256 && -s $contents/modes ]] || return 1
  ! list_files "$1" | cmp -s - "$contents/listing" || return 0
  damaged=$( (cd -- "$1" && sha256sum --check --quiet --strict "$CONTENTS/sha256") 2>/dev/null |
    sed -n '1s/: [^:]*$//p') || true
  [[ -n $damaged ]] ||
    damaged=$(list_modes "$1" | LC_ALL=C comm -23 "$contents/modes" - |
      sed -n '1s/ [0-7]* [^ ]*$//p')
  [[ -z $damaged ]] || return 1
  [[ ! -w $contents ]] || { # another user's: whole all the same
    list_files "$1" >"$contents/listing.$$" &&
      mv -- "$contents/listing.$$" "$contents/listing"
  }
}

# find_part NAME KEY: sets `part` to the folder that the part has, or will have.
find_part() {
  part=$cache/$1/$(hash_text "$2" "$FORMAT")
}

# ensure_part TITLE SECONDS COMMAND...: builds `part` if need be, with `COMMAND... FOLDER FINAL`:
# FOLDER is to be filled, FINAL is its later name. SECONDS is about how long that takes.
ensure_part() {
  local title=$1 about=$2 start=$SECONDS name=${part%/*} log again='' spanned
  name=${name##*/}
  shift 2
  ! { [[ -d $part ]] && is_whole "$part"; } || return 0
  take_lock
  if [[ -d $part ]]; then
    ! is_whole "$part" || return 0 # another bootstrap built it while this one waited
    again=" again: ${damaged#./} is damaged or gone"
  fi
  log=$cache/logs/$name.log
  unfinished=$cache/$name/.new-$$
  rm -rf -- "$cache/$name"/.new-* # left by a killed bootstrap: the lock is ours
  mkdir -p -- "$unfinished"
  span "$about"
  say "$title: building$again, about $spanned; log: $log"
  require_ours "$log"
  if ! { attended "$title" "$about" "$log" "$@" "$unfinished" "$part" &&
    write_contents "$unfinished"; }; then
    tail -n 25 -- "$log" >&2
    rm -rf -- "$unfinished"
    say "$title: the build failed; all of its output is in $log"
    exit "$EXIT_INCOMPLETE"
  fi
  rm -rf -- "$part"
  mv -T -- "$unfinished" "$part"
  unfinished=
  say "$title: ready in $((SECONDS - start)) s"
}
