# shellcheck shell=bash
# Work that takes long: watched, told about, and ended with all its processes by a signal. Beside the
# work at hand there may be one more, which speaks for itself.

readonly EXIT_INTERRUPTED=130

working=    # the process group of the work at hand, if any
beside=     # that of the work beside it, if any
unfinished= # the folder that it fills, to be removed should it not come to its end
spared=     # set while what is done must come to its end: dpkg must not be stopped halfway

# begin COMMAND...: starts it in a process group of its own, named by `begun`. A signal is held back until
# `hear`, when all that it ends is known.
begin() {
  held=
  trap 'held=1' INT TERM HUP
  set -m
  setpriv --pdeathsig TERM -- "$@" </dev/null &
  begun=$!
  set +m
}

hear() {
  trap end_interrupted INT TERM HUP
  [[ -z $held ]] || end_interrupted
}

# begin_beside COMMAND...: starts it, to go on beside all that follows; ended when this shell exits.
begin_beside() {
  begin "$@"
  beside=$begun
  trap end_work EXIT
  hear
}

# await_beside: waits until it has ended, and returns its status.
await_beside() {
  local status=0
  wait "$beside" || status=$?
  beside=
  trap - EXIT
  return "$status"
}

# attended TITLE SECONDS LOG COMMAND...: runs it to its end, with its output in LOG, and says
# meanwhile that it goes on.
attended() {
  local title=$1 about log=$3 start=$SECONDS told=$SECONDS status=0 never spanned
  span "$2"
  about="usually $spanned in all"
  shift 3
  exec {never}<> <(:) # nothing ever comes: reading it is a sleep that needs no process
  begin "$@" >"$log" 2>&1
  working=$begun
  hear
  while kill -0 "$working" 2>/dev/null; do
    read -r -t 0.1 -u "$never" || true
    if ((SECONDS - told >= TELL_EVERY_S)); then
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
  end_work
  [[ -z $unfinished ]] || rm -rf -- "$unfinished"
  exit "$EXIT_INTERRUPTED"
}

# end_work: terminates all work, kills what does not end within a minute (to remove a kernel's source
# takes a while), and waits; for the end of what is spared it only waits.
end_work() {
  local group groups=() _
  [[ -z $beside ]] || groups+=("$beside")
  [[ -z $working ]] || groups+=("$working")
  for group in "${groups[@]}"; do
    kill -TERM -- "-$group" 2>/dev/null || true
  done
  for group in "${groups[@]}"; do
    if [[ $group != "$working" || -z $spared ]]; then
      for _ in {1..600}; do
        kill -0 -- "-$group" 2>/dev/null || break
        sleep 0.1
      done
      kill -KILL -- "-$group" 2>/dev/null || true
    fi
    wait "$group" 2>/dev/null || true
  done
  working='' beside=''
}

trap end_interrupted INT TERM HUP
