# shellcheck shell=bash
# What bootstrap tells the user: short lines on standard error, nothing when nothing is done.

readonly EXIT_MISSING=3 EXIT_INCOMPLETE=4
# Nobody waits longer than this without a word.
readonly TELL_EVERY_S=15

say() {
  printf 'firstflight: %s\n' "$*" >&2
}

# refuse MESSAGE...: something that this machine lacks; the exit status says so to programs.
refuse() {
  say "$@"
  exit "$EXIT_MISSING"
}

# span SECONDS: sets `spanned` to `40 s` or `1 min 05 s`.
span() {
  spanned="$1 s"
  (($1 < 60)) || printf -v spanned '%d min %02d s' "$(($1 / 60))" "$(($1 % 60))"
}
