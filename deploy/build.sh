#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# build.sh PRESET JOBS [TARGET]: configures a preset and builds it (or one target), with the progress that Ninja shows.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1 jobs=$2 target=${3:-all}
folder=build; [ "$preset" = release ] || folder=build-$preset
# Each time, for the set-up may have brought what the last one did not find: Python's packages for the tests.
[ -f "$folder/build.ninja" ] || printf '\033[1m==>\033[0m Configuring %s in %s/\n' "$preset" "$folder"
cmake --preset "$preset" >"$folder.log" 2>&1 || { cat "$folder.log" >&2; rm -f "$folder.log"; exit 1; }
rm -f "$folder.log"
printf '\033[1m==>\033[0m Building %s (%s) with %s jobs\n' "$preset" "$target" "$jobs"
cmake --build "$folder" -j "$jobs" --target "$target"
