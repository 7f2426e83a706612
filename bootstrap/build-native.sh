#!/usr/bin/env bash
# Compiles each testbed/native/*.c into FOLDER: one with a main() becomes a static program of
# its name, any other a shared object.
# Usage: build-native.sh SOURCES FOLDER [FINAL]
set -euo pipefail

readonly sources=$1 folder=$2
readonly flags=(-std=gnu11 -O2 -Wall -Wextra -Werror)

shopt -s nullglob
for source in "$sources"/*.c; do
  name=$(basename -- "$source" .c)
  if grep -qE '^(int )?main\(' "$source"; then
    cc "${flags[@]}" -static -o "$folder/$name" "$source"
  else
    cc "${flags[@]}" -shared -fPIC -o "$folder/$name.so" "$source"
  fi
done
