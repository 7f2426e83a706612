# shellcheck shell=bash
# What bootstrap tells the user: short lines on standard error, nothing when nothing is done.

readonly EXIT_MISSING=3

say() {
  printf 'firstflight: %s\n' "$*" >&2
}

# refuse MESSAGE...: something that this machine lacks; the exit status says so to programs.
refuse() {
  say "$@"
  exit "$EXIT_MISSING"
}
