#!/bin/bash
# Compiler of a kernel: gcc, with the headers that nearly every file includes compiled once.
#
# Make calls it in the kernel's tree, as .precompiled/gcc.  SYSROOT is where the headers and libraries of
# the toolchain are.  Without it gcc parses the same 600 headers
# for each file, which is most of what the file costs (gcc's manual: Precompiled Headers).
# All files of a build share the compiled headers, whichever came first: they are made from the options
# that make exports.  What gcc says the headers are made of is among what make compiles a file again for.
# Compiled as usual is a file that defines a macro before its first #include, since headers may ask for
# it; and one that does not compile this way, so that the errors are those of the file as it is.
set -euo pipefail

readonly gcc=(gcc "--sysroot=$SYSROOT")
readonly folder=.precompiled
readonly headers=$folder/headers.h
readonly source=${*: -1}
# Where a warning is in a macro is not looked up; nor is then known that the macro allows it.
readonly FASTER=(-ftrack-macro-expansion=0 -Wno-attribute-alias -Wno-tautological-compare)

# begins_with_macro FILE
begins_with_macro() {
  local line
  while read -r line; do
    case $line in
    '#'*include*) return 1 ;;
    '#'*define* | '#'*undef*) return 0 ;;
    esac
  done <"$1"
  return 1
}

# without_names WORD...: sets `options`, and `names`, a header in place of the macros that name the file,
# which gcc would not take compiled headers beside; those that all files get are in `headers`.
without_names() {
  local word previous=''
  options=() names=''
  for word in "$@"; do
    case $previous:$word in
    -include:./include/linux/compiler-version.h | -include:./include/linux/kconfig.h | \
      -include:./include/linux/compiler_types.h) unset 'options[-1]' ;;
    *:-DKBUILD_*=* | *:-D__KBUILD_*=*)
      word=${word#-D}
      names+="#define ${word%%=*} ${word#*=}"$'\n'
      ;;
    *) options+=("$word") ;;
    esac
    previous=$word
  done
}

# compile_headers: from make's own variables (Documentation/kbuild/kbuild.rst).  Where a change of the
# kernel keeps them from being compiled all files are compiled as usual.
compile_headers() {
  local words
  exec 9>"$folder/lock"
  flock 9
  if [[ -e $headers && ! -e $headers.gch ]]; then
    read -ra words <<<"$NOSTDINC_FLAGS $LINUXINCLUDE $KBUILD_CPPFLAGS $KBUILD_CFLAGS \
      ${CFLAGS_KASAN-} ${CFLAGS_UBSAN-}"
    without_names "${words[@]}"
    # With -MMD gcc keeps in it what it is made of.
    if "${gcc[@]}" "${options[@]}" "${FASTER[@]}" "-Wp,-MMD,$headers.d" -x c-header -o "$headers.new" \
      "$headers" 2>"$headers.log"; then
      mv -- "$headers.new" "$headers.gch"
    else
      rm -- "$headers"
    fi
  fi
  exec 9>&-
}

if [[ " $* " != *' -c -o '* ||
  ! $source =~ ^(block|crypto|drivers|fs|init|ipc|kernel|lib|mm|net|security)/.*\.c$ ]] ||
  begins_with_macro "$source"; then
  exec "${gcc[@]}" "$@"
fi
[[ -e $headers.gch ]] || compile_headers
[[ -e $headers.gch ]] || exec "${gcc[@]}" "$@"
without_names "$@"
named=$folder/${source//\//_}
printf '%s' "$names" >"$named"
if said=$("${gcc[@]}" "${options[@]}" "${FASTER[@]}" -fpch-deps -include "$headers" -include "$named" 2>&1); then
  [[ -z $said ]] || printf '%s\n' "$said" >&2
else
  exec "${gcc[@]}" "$@"
fi
