#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Everything that a fresh Debian 12 machine needs to build ablate, and with --tests to test it:
#   1. Debian packages (deploy/packages.txt), those that are missing, with root or sudo;
#   2. LibTorch: PyTorch's wheel in .deps/python, unless $ABLATE_PYTHON has one;
#   3. Node for the dashboard: the one on the PATH if it is new enough, otherwise one in .deps/node;
#   4. with --tests, timm and what it imports (deploy/python-tests.txt): the models are held against it;
#   5. with --tests, what scripts and notebooks use (deploy/python-packages.txt), where it can be had.
# Run it as often as you like: what is there is left alone. Everything but the packages stays inside the checkout.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly TORCH=2.13.0      # of the wheel that is installed; any PyTorch from 2.11 on serves
readonly NODE=22           # installed only where no Node of at least 20.19 is found
say() { printf '\033[1m==>\033[0m %s\n' "$*"; }
die() { printf 'setup: %s\n' "$*" >&2; exit 1; }

tests=no fuzz=no web=yes torch=yes
for argument in "$@"; do
  case $argument in
    --tests) tests=yes ;;
    --fuzz) tests=yes fuzz=yes ;;
    --no-web) web=no ;;
    --no-torch) torch=no ;;
    *) die "unknown argument $argument (--tests, --fuzz, --no-web, --no-torch)" ;;
  esac
done

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else die "root is needed for: $* — run it as root, or install sudo"
  fi
}

installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

install_packages() {
  local missing=() package
  for package in "$@"; do installed "$package" || missing+=("$package"); done
  [ ${#missing[@]} = 0 ] && return
  command -v apt-get >/dev/null || die "these packages are missing, and there is no apt-get: ${missing[*]}"
  say "Debian packages: ${missing[*]}"
  as_root apt-get -qq update || die "apt-get update failed: are the package sources set up?"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${missing[@]}" >/dev/null ||
    die "apt-get could not install: ${missing[*]}"
}

packages() {  # what the build needs, and the sections of the list that were asked for
  awk -v tests=$tests -v fuzz=$fuzz '
    /^\[/ { wanted = ($0 == "[tests]" && tests == "yes") || ($0 == "[fuzz]" && fuzz == "yes"); inside = 1; next }
    /^#/ || /^$/ { next }
    !inside || wanted' deploy/packages.txt
}

has_torch() {
  "$1" - <<'PY' 2>/dev/null
import importlib.metadata as m
version = tuple(int(part) for part in m.version("torch").split("+")[0].split(".")[:2])
raise SystemExit(version < (2, 11))
PY
}

setup_torch() {
  if [ -n "${ABLATE_PYTHON:-}" ]; then
    has_torch "$ABLATE_PYTHON" || die "ABLATE_PYTHON=$ABLATE_PYTHON has no PyTorch of version 2.11 or newer; install one there, or unset it"
    return
  fi
  local python=.deps/python/bin/python
  [ -x $python ] || { say "Python environment in .deps/python"; python3 -m venv .deps/python; }
  if ! has_torch $python; then
    say "PyTorch $TORCH into .deps/python (1 GB; where only the CUDA build is to be had, 5 GB)"
    $python -m pip install --quiet --disable-pip-version-check "torch==$TORCH" ||
      die "pip could not install torch==$TORCH; install PyTorch >= 2.11 yourself and set ABLATE_PYTHON to its python"
  fi
}

beside() {  # $2: an environment of its own that also sees the packages of the python $1
  local folders link
  folders=$("$1" - <<'PY'
import os, sys, sysconfig
for folder in sys.path:
    if os.path.isdir(folder) and (folder.endswith("-packages") or not folder.startswith(sysconfig.get_path("stdlib"))):
        print(folder)
PY
  )
  link=$(echo "$2"/lib/python*/site-packages)/beside.pth
  [ "$(cat "$link" 2>/dev/null)" = "$folders" ] && return
  say "Python environment in $2, beside that of $1"
  "$1" -m venv --clear "$2"
  echo "$folders" > "$(echo "$2"/lib/python*/site-packages)/beside.pth"
}

matching_packages() {  # deploy/python-tests.txt for the PyTorch of the python $1: torchvision 0.28 belongs to 2.13, 0.27 to 2.12
  "$1" - <<'PY'
import importlib.metadata
minor = int(importlib.metadata.version("torch").split(".")[1])
for line in open("deploy/python-tests.txt"):
    package, _, pinned = line.strip().partition("==")
    if pinned and not line.startswith("#"):
        other = package == "torchvision" and not pinned.startswith(f"0.{minor + 15}.")
        print(f"{package}==0.{minor + 15}.*" if other else f"{package}=={pinned}")
PY
}

setup_ground_truth() {  # what tests/parity imports: into .deps/python; $ABLATE_PYTHON is left as it is
  local python=${ABLATE_PYTHON:-.deps/python/bin/python} packages
  "$python" tests/parity/environment.py 2>/dev/null && return
  if [ -n "${ABLATE_PYTHON:-}" ]; then
    beside "$python" .deps/python-tests
    python=.deps/python-tests/bin/python
    $python tests/parity/environment.py 2>/dev/null && return
  fi
  mapfile -t packages < <(matching_packages "$python")
  say "${packages[*]} into ${python%/bin/python} (for the ground truth of the model tests)"
  $python -m pip install --quiet --disable-pip-version-check --no-deps "${packages[@]}" ||
    die "pip could not install: ${packages[*]}"
  $python tests/parity/environment.py || die "the packages for the ground truth are not complete"
}

has_packages() {  # whether the python $1 has all of deploy/python-packages.txt
  [ -x "$1" ] && "$1" - <<'PY' 2>/dev/null
import importlib.metadata
for line in open("deploy/python-packages.txt"):
    package, _, pinned = line.strip().partition("==")
    if pinned and not line.startswith("#") and importlib.metadata.version(package) != pinned:
        raise SystemExit(1)
PY
}

setup_packages() {  # into .deps/python-packages, which sees PyTorch and keeps pip from another one
  local base=${ABLATE_PYTHON:-.deps/python/bin/python} python=.deps/python-packages/bin/python kept
  [ -z "${ABLATE_PYTHON:-}" ] || [ ! -x .deps/python-tests/bin/python ] || base=.deps/python-tests/bin/python
  beside "$base" .deps/python-packages
  has_packages $python && return
  kept=$(mktemp)
  "$base" - > "$kept" <<'PY'
import importlib.metadata
for package in ("numpy", "safetensors", "timm", "torch", "torchvision"):
    try:
        print(f"{package}=={importlib.metadata.version(package)}")
    except importlib.metadata.PackageNotFoundError:
        pass
PY
  say "Lightning, transformers, pandas and others into .deps/python-packages (for the tests of python/ablate; 600 MB)"
  $python -m pip install --quiet --disable-pip-version-check --constraint "$kept" --requirement deploy/python-packages.txt ||
    say "pip could not install deploy/python-packages.txt: tests that need them are skipped"
  rm -f "$kept"
}

node_is_new_enough() {
  command -v "$1" >/dev/null && "$1" -e '
    const [major, minor] = process.versions.node.split(".").map(Number);
    process.exit(major > 22 || (major === 22 && minor >= 12) || (major === 20 && minor >= 19) ? 0 : 1)' 2>/dev/null
}

setup_node() {
  if node_is_new_enough node && command -v npm >/dev/null; then return; fi
  if node_is_new_enough .deps/node/bin/node && [ -x .deps/node/bin/npm ]; then return; fi
  command -v npm >/dev/null || install_packages nodejs npm
  say "Node $NODE into .deps/node (the one of this machine is too old for the dashboard's build)"
  local packages=.deps/node/packages arch=x64
  [ "$(uname -m)" = aarch64 ] && arch=arm64
  mkdir -p $packages .deps/node/bin
  npm install --silent --no-fund --no-audit --prefix $packages "node-linux-$arch@$NODE" npm@11 || die "npm could not install Node $NODE"
  ln -sf ../packages/node_modules/node-linux-$arch/bin/node .deps/node/bin/node
  local tool
  for tool in npm npx; do
    printf '#!/bin/sh\nhere=$(dirname "$(readlink -f "$0")")\nPATH="$here:$PATH"; export PATH\nexec "$here/node" "$here/../packages/node_modules/npm/bin/%s-cli.js" "$@"\n' $tool \
      > .deps/node/bin/$tool
    chmod +x .deps/node/bin/$tool
  done
}

# shellcheck disable=SC2046  # one word a package
install_packages $(packages)
[ "$torch" = no ] || setup_torch
[ "$torch" = no ] || [ "$tests" = no ] || setup_ground_truth
[ "$torch" = no ] || [ "$tests" = no ] || setup_packages
[ "$web" = no ] || setup_node
say "Set-up is complete"
