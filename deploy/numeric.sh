#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# numeric.sh [BUILD]: runs the tests that compute in LibTorch (label `numeric`) as they would run on other processors. oneDNN, ATen and MKL choose their
# kernels by the processor's instructions, and each has a variable that takes some away: what a test demands must hold with every choice. A
# setting that takes nothing away here, because the processor lacks it or has nothing above it, is what `make test` runs anyway: it is left out and said.
#
# Under each setting run the parts, the families and the parity with Python, in about two minutes; the trainer's, ranks' and counting tests, whose
# arithmetic is the same models', run under one of them (the first). Programs and end-to-end tests are left to `make test`.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
models='^models_(parts|families|parity)_test$'
others='^(trainer_test|ranks_test|counting_.*)$'
say() { printf '\033[1m==>\033[0m %s\n' "$*"; }

flags=" $(sed -n '/^flags/{s/.*://p;q}' /proc/cpuinfo) "
has() { for flag in "$@"; do [[ $flags == *" $flag "* ]] || return 1; done; }

# What the processor has, in the order in which oneDNN's names include each other.
level=0
has avx2 && level=1
has avx512f avx512bw avx512vl avx512dq && level=2
[ $level = 2 ] && has avx512_vnni && level=3
[ $level = 3 ] && has avx512_bf16 && level=4
[ $level = 4 ] && { has avx512_fp16 || has amx_bf16; } && level=5

# VARIABLE=VALUE, and the level that it leaves: it says something where the processor has that and more.
settings=(
  "ONEDNN_MAX_CPU_ISA=AVX2 1"
  "ONEDNN_MAX_CPU_ISA=AVX512_CORE 2"
  "ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 4"
  "ATEN_CPU_CAPABILITY=default 0"
  "ATEN_CPU_CAPABILITY=avx2 1"
  "MKL_ENABLE_INSTRUCTIONS=AVX2 1"
)

began=$SECONDS ran=0 failed=()
for setting in "${settings[@]}"; do
  read -r variable left <<<"$setting"
  if [ "$level" -le "$left" ]; then
    say "$variable: left out; this processor has no instructions beyond it, so that 'make test' runs just this"
    continue
  fi
  say "$variable"
  tests=$models fixtures=(-FA parity_files)
  [ "$ran" -gt 0 ] || tests="$models|$others" fixtures=()
  env "$variable" OMP_NUM_THREADS=1 ctest --test-dir "$build" -L numeric -R "$tests" "${fixtures[@]}" -j "$(nproc)" --output-on-failure --no-tests=error || failed+=("$variable")
  ran=$((ran + 1))
done
say "$ran $([ "$ran" = 1 ] && echo setting || echo settings) in $((SECONDS - began)) s"
[ ${#failed[@]} -eq 0 ] || { say "failed under ${failed[*]}"; exit 1; }
