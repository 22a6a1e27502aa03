#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Compiles and links the trainer, its GPU tests and the steps' benchmark against a CUDA build of PyTorch, with NCCL, and lets it train on
# the CPU: what can be checked of that path without a GPU; with one the tests run. Nothing but wheels is needed: no nvcc, no toolkit. 5 GB under .deps/cuda, the build in build-cuda-check.
set -euo pipefail
cd "$(dirname "$0")/.."
readonly TORCH=${1:-2.13.0}  # of the CUDA wheel; PyTorch 2.11 is the oldest that serves
readonly PYTHON=.deps/cuda/bin/python BUILD=build-cuda-check
say() { printf '\033[1m==>\033[0m %s\n' "$*"; }
die() { printf 'cuda-check: %s\n' "$*" >&2; exit 1; }

install() { $PYTHON -m pip install --quiet --disable-pip-version-check "$@"; }

[ -x $PYTHON ] || python3 -m venv .deps/cuda
# `===`: where a registry also has the CPU's build, its longer version would be the newer one
$PYTHON -c "import importlib.metadata as m; raise SystemExit(m.version('torch') != '$TORCH')" 2>/dev/null || {
  say "PyTorch $TORCH, CUDA build, into .deps/cuda"
  install "torch===$TORCH" || die "no CUDA build of torch $TORCH could be installed; name another version: deploy/cuda-check.sh 2.12.0"
}
toolkit=$($PYTHON -c "import importlib.metadata as m; print(m.version('cuda-toolkit'))") ||
  die "torch $TORCH came without CUDA: the registry has only a CPU build of it; name another version"
install "cuda-toolkit[crt,cccl]==$toolkit"  # headers that those of the runtime include

say "The trainer, its GPU tests and step_server, in $BUILD"
ABLATE_PYTHON=$PWD/$PYTHON cmake -S . -B $BUILD -G Ninja -DCMAKE_BUILD_TYPE=Release -DABLATE_ONLY_TRAINER=OFF -DABLATE_WEB=OFF -DLibTorch_CUDA=ON
cmake --build $BUILD --target ablate-trainer trainer_test ranks_test step_server ${JOBS:+-j "$JOBS"}
# read to its end: where grep leaves early, nm fails
nm -C $BUILD/bin/ablate-trainer | grep 'c10d::ProcessGroupNCCL::ProcessGroupNCCL' > /dev/null || die "the trainer was built without NCCL"

say "The GPU tests, which skip where there is none"
ctest --test-dir $BUILD -L cuda --output-on-failure

say "Two ranks on the CPU"
$BUILD/bin/ablate-trainer --version
run=$(mktemp -d)
trap 'rm -rf "$run"' EXIT
cat > "$run/trial.json" <<'JSON'
{"model": {"family": "simple-vit", "dim": 16, "depth": 1, "heads": 2, "dim_head": 8, "patch": 8},
 "data": {"name": "shapes", "train_images": 200, "val_images": 50},
 "recipe": {"use": "demo", "epochs": 1, "batch": 20}, "seed": 0}
JSON
$BUILD/bin/ablate-trainer train --config "$run/trial.json" --run-dir "$run" --ranks 2 --threads 2 --json | tail -n 3 | tee "$run/said"
grep -q '"status":"completed"' "$run/said" || die "the training did not complete"
say "The CUDA build compiles, links and trains on the CPU"
