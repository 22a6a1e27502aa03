#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# numeric.sh [BUILD]: runs the tests that compute in LibTorch (label `numeric`) as they would run on other processors. oneDNN, ATen and MKL choose their
# kernels by the processor's instructions, and each has a variable that takes some away: what a test demands must hold with every choice. A setting that
# takes nothing away here is what `make test` runs anyway: it is left out and said.
#
# Under each setting run the parts, the families and the parity with Python; the trainer's, ranks' and counting tests, whose arithmetic is the same
# models', run under the first of them alone. What never runs here is named at the end.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
each='^models_(parts|families|parity)_test$'
once='^(trainer_test|ranks_test|counting_.*)$'
say() { printf '\033[1m==>\033[0m %s\n' "$*"; }

flags=" $(sed -n '/^flags/{s/.*://p;q}' /proc/cpuinfo) "
has_any() { for flag in "$@"; do [[ $flags == *" $flag "* ]] && return; done; return 1; }

# VARIABLE=VALUE, and by what names Linux knows the instructions that it takes away: one is enough.
settings=(
  "ONEDNN_MAX_CPU_ISA=AVX2 avx_vnni avx512f"
  "ONEDNN_MAX_CPU_ISA=AVX512_CORE avx512_vnni"
  "ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 avx512_fp16 amx_tile"
  "ATEN_CPU_CAPABILITY=default avx2"
  "ATEN_CPU_CAPABILITY=avx2 avx512f"
  "MKL_ENABLE_INSTRUCTIONS=AVX2 avx512f"
)

began=$SECONDS ran=0 failed=()
for setting in "${settings[@]}"; do
  read -r variable taken <<<"$setting"
  # shellcheck disable=SC2086  # several names
  if ! has_any $taken; then
    say "$variable: left out; this processor has no ${taken// / and no }, so that 'make test' runs just this"
    continue
  fi
  say "$variable"
  tests=$each fixtures=(-FA parity_files)  # what Python computed is written once
  [ "$ran" -gt 0 ] || tests="$each|$once" fixtures=()
  env "$variable" OMP_NUM_THREADS=1 ctest --test-dir "$build" -L numeric -R "$tests" "${fixtures[@]}" -j "$(nproc)" --output-on-failure --no-tests=error || failed+=("$variable")
  ran=$((ran + 1))
done

mapfile -t numeric < <(ctest --test-dir "$build" -N -L numeric | sed -nE 's/^ *Test +#[0-9]+: //p' | sort)
left=()
for test in "${numeric[@]}"; do [[ $test =~ $each || $test =~ $once || $test = models_parity_files ]] || left+=("$test"); done
say "left to 'make test', for time: ${left[*]}, the demo and what else runs whole programs"
say "$ran of ${#settings[@]} settings in $((SECONDS - began)) s"
[ ${#failed[@]} -eq 0 ] || { say "failed under ${failed[*]}"; exit 1; }
