#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# numeric.sh [BUILD]: runs the tests that compute in LibTorch (label `numeric`) as they would run on other processors. oneDNN, ATen and MKL choose their
# kernels by the processor's instructions, and each has a variable that takes some away: what a test demands must hold with every choice. A setting that
# takes nothing away here is what `make test` runs anyway: it is left out and said.
#
# All of them in at most ABLATE_NUMERIC_SECONDS (480), what most depends on the kernels first: under each setting the models and their parity
# with Python; then under each the trainer's, the ranks' and the counting tests; then the demo. What there was no time for is said.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
limit=${ABLATE_NUMERIC_SECONDS:-480}
first='^models_(parity_)?test$'
say() { printf '\033[1m==>\033[0m %s\n' "$*"; }

flags=" $(sed -n '/^flags/{s/.*://p;q}' /proc/cpuinfo) "
has_any() { for flag in "$@"; do [[ $flags == *" $flag "* ]] && return; done; return 1; }

# VARIABLE=VALUE, and by what names Linux knows the instructions that it takes away: one is enough. ATen's with oneDNN's: no processor has the
# tiles that oneDNN would use there (AMX) and lacks what ATen packs their operands with, which fails in PyTorch itself.
settings=(
  "ONEDNN_MAX_CPU_ISA=AVX2 avx_vnni avx512f"
  "ONEDNN_MAX_CPU_ISA=AVX512_CORE avx512_vnni"
  "ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 avx512_fp16 amx_tile"
  "ATEN_CPU_CAPABILITY=default,ONEDNN_MAX_CPU_ISA=AVX2 avx2"
  "ATEN_CPU_CAPABILITY=avx2,ONEDNN_MAX_CPU_ISA=AVX2 avx512f"
  "MKL_ENABLE_INSTRUCTIONS=AVX2 avx512f"
)

here=()
for setting in "${settings[@]}"; do
  read -r variable taken <<<"$setting"
  # shellcheck disable=SC2086  # several names
  if has_any $taken; then
    here+=("$variable")
  else
    say "$variable: left out; this processor has no ${taken// / and no }, so that 'make test' runs just this"
  fi
done

began=$SECONDS failed=() left=()
# run WHAT SETTING COMMAND…: under the setting, unless the last one of its kind took longer than there is time left.
declare -A took=()
run() {
  local what=$1 setting=$2 start=$SECONDS
  shift 2
  if [ $((SECONDS - began + ${took[$what]:-0})) -ge "$limit" ]; then
    left+=("$what under $setting")
    return
  fi
  say "$what under $setting"
  (IFS=,; for one in $setting; do export "${one?}"; done; unset IFS; "$@") || failed+=("$what under $setting")
  took[$what]=$((SECONDS - start))
}
# What Python computed is written once, by the first test that asks for it.
jobs=$((2 * $(nproc)))  # as `make test` counts; and before OMP_NUM_THREADS, which nproc heeds
tests() { OMP_NUM_THREADS=1 ctest --test-dir "$build" -L numeric -j "$jobs" --output-on-failure --no-tests=error "$@"; }
demo() {
  local home status=0
  home=$(mktemp -d)
  ABLATE_HOME=$home BUILD=$build deploy/demo.sh || status=$?
  ABLATE_HOME=$home "$build/bin/ablate" down >/dev/null || true
  rm -rf "$home"
  return "$status"
}

for setting in "${here[@]}"; do run "models and parity" "$setting" tests -R "$first"; done
for setting in "${here[@]}"; do run "trainer, ranks and counts" "$setting" tests -E "$first" -FA .; done
for setting in "${here[@]}"; do run "the demo" "$setting" demo; done
[ ${#left[@]} -eq 0 ] || { say "no time was left within $limit s (ABLATE_NUMERIC_SECONDS) for"; printf '    %s\n' "${left[@]}"; }
say "${#here[@]} of ${#settings[@]} settings in $((SECONDS - began)) s"
[ ${#failed[@]} -eq 0 ] || { say "failed:"; printf '    %s\n' "${failed[@]}"; exit 1; }
