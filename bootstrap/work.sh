# shellcheck shell=bash
# Work that takes long: watched, told about, and ended with all its processes by a signal.

readonly EXIT_INTERRUPTED=130

working=    # the process group of the work at hand, if any
unfinished= # the folder that it fills, to be removed should it not come to its end
spared=     # set while what is done must come to its end: dpkg must not be stopped halfway

# attended TITLE SECONDS LOG COMMAND...: runs it to its end, with its output in LOG, and says
# meanwhile that it goes on. An empty TITLE: the command has standard error, and speaks for itself.
attended() {
  local title=$1 about log=$3 start=$SECONDS told=$SECONDS status=0 never spanned
  span "$2"
  about="usually $spanned in all"
  shift 3
  exec {never}<> <(:) # nothing ever comes: reading it is a sleep that needs no process
  set -m              # a process group of its own
  if [[ -n $title ]]; then
    setpriv --pdeathsig TERM -- "$@" >"$log" 2>&1 </dev/null &
  else
    setpriv --pdeathsig TERM -- "$@" >"$log" </dev/null &
  fi
  working=$!
  set +m
  while kill -0 "$working" 2>/dev/null; do
    read -r -t 0.1 -u "$never" || true
    if [[ -n $title ]] && ((SECONDS - told >= TELL_EVERY_S)); then
      told=$SECONDS
      span "$((SECONDS - start))"
      say "$title: $spanned so far, $about; log: $log"
    fi
  done
  wait "$working" || status=$?
  working=
  exec {never}>&-
  return "$status"
}

# A signal ends the work at hand, leaves nothing half-built, and is told as status 130.
end_interrupted() {
  trap '' INT TERM HUP
  say "interrupted"
  [[ -z $spared ]] || say "$spared"
  [[ -z $working ]] || end_work
  [[ -z $unfinished ]] || rm -rf -- "$unfinished"
  exit "$EXIT_INTERRUPTED"
}

# end_work: terminate, then kill what does not end within a minute (to remove a kernel's source
# takes a while), then wait; of what is spared it only waits for the end.
end_work() {
  local _
  kill -TERM -- "-$working" 2>/dev/null || true
  if [[ -z $spared ]]; then
    for _ in {1..600}; do
      kill -0 -- "-$working" 2>/dev/null || break
      sleep 0.1
    done
    kill -KILL -- "-$working" 2>/dev/null || true
  fi
  wait "$working" 2>/dev/null || true
}

trap end_interrupted INT TERM HUP
