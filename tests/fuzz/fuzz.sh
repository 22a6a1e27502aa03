#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# fuzz.sh SECONDS [TARGET…]: runs libFuzzer for so long on each target (all of them: build-fuzz/tests/fuzz_reader --list), one after the
# other. It begins with the corpus and the examples of the tree; what it finds on the way stays in build-fuzz/found/TARGET, and the
# next time it begins there. An input that breaks a target is kept too, and the command that reads it again is said; exit 1.
set -euo pipefail
cd "$(dirname "$0")/../.."
fuzz=build-fuzz/tests/fuzz_reader
say() { printf '\033[1m==>\033[0m %s\n' "$*"; }
die() { printf 'fuzz: %s\n' "$*" >&2; exit 2; }

seconds=${1:?seconds for each target}; shift
[[ $seconds =~ ^[1-9][0-9]*$ ]] || die "SECONDS=$seconds: expected a whole number"
[ -x $fuzz ] || die "$fuzz is not built: run 'make fuzz'"
list=$($fuzz --list)
for name in "$@"; do grep -q "^$name " <<<"$list" || die "TARGET=$name is none of: $(cut -d' ' -f1 <<<"$list" | tr '\n' ' ')"; done

# stores of the targets are small and many: in memory where there is room
[ -n "${TMPDIR:-}" ] || ! [ -w /dev/shm ] || export TMPDIR=/dev/shm
# beyond 2 GiB the next allocation fails where it stands: libFuzzer's own limit says nothing of the place
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=0:soft_rss_limit_mb=2048 UBSAN_OPTIONS=print_stacktrace=1

broken=()
while read -r name bytes examples; do
  [ $# = 0 ] || [[ " $* " == *" $name "* ]] || continue
  found=build-fuzz/found/$name examples_here=build-fuzz/found/examples/$name
  mkdir -p "$found" "$examples_here"
  for example in $examples; do  # libFuzzer takes folders alone, and reads those beneath them too
    while read -r file; do cp "$file" "$examples_here/${file//\//-}"; done < <(find "$example" -type f)
  done
  say "$name: $seconds s"
  log=build-fuzz/found/$name.log
  dictionary=tests/fuzz/dictionaries/$name.dict
  if $fuzz --target="$name" --keep="$found.input" -max_total_time="$seconds" -max_len="$bytes" -timeout=25 -rss_limit_mb=0 -print_final_stats=1 \
      -verbosity=1 -artifact_prefix="build-fuzz/found/$name-" $([ -f "$dictionary" ] && echo "-dict=$dictionary") \
      "$found" "tests/fuzz/corpus/$name" "$examples_here" >"$log" 2>&1 </dev/null; then
    printf '    %s inputs, %s new ones kept, no failure\n' \
      "$(sed -n 's/^stat::number_of_executed_units: //p' "$log")" "$(sed -n 's/^stat::new_units_added: //p' "$log")"
  else
    broken+=("$name")
    input=build-fuzz/found/$name-$(sha1sum <"$found.input" | cut -c1-12)
    mv "$found.input" "$input"
    grep -m1 -E 'this does not hold|ERROR: |runtime error|what\(\):|ALARM|out-of-memory' "$log" | sed 's/^/    /'
    printf '    again: %s --target=%s %s\n    all it said: %s\n' "$fuzz" "$name" "$input" "$log"
  fi
done <<<"$list"
[ ${#broken[@]} = 0 ] || { say "broken: ${broken[*]}"; exit 1; }
say "Nothing was found"
