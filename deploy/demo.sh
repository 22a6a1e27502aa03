#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# demo.sh [--sweep FILE | --data FOLDER]: the main job in small. Starts ablate on this machine, submits a projection-sharing sweep, shows its table
# filling, prints it, and says where the dashboard is. FILE: another sweep on embedded images. FOLDER: images (JPEG, PNG, WebP), a folder for each class (or train/ and val/ of such folders)
# in place of the embedded images. Run it again: what is trained already is not trained again.
set -euo pipefail
cd "$(dirname "$0")/.."
say() { printf '\033[1m==>\033[0m %s\n' "$*"; }
die() { printf 'demo: %s\n' "$*" >&2; exit 2; }

data=
sweep=sweeps/demo/projection-sharing.yaml
while [ $# -gt 0 ]; do
  case $1 in
    --data) data=${2:?--data needs a folder}; shift 2 ;;
    --sweep) sweep=${2:?--sweep needs a file}; shift 2 ;;
    *) die "unknown argument $1 (--data FOLDER, --sweep FILE)" ;;
  esac
done

unset ABLATE_SCHEDULER  # the one that is started here
export ABLATE_HOME=${ABLATE_HOME:-$PWD/out/demo}
PATH=$PWD/${BUILD:-build}/bin:$PATH
options=()
if [ -n "$data" ]; then
  [ -d "$data" ] || die "DATA=$data is not a folder; expected FOLDER/CLASS/IMAGE, or FOLDER/train/CLASS/IMAGE with FOLDER/val or FOLDER/test"
  data=$(realpath "$data")
  top=$data; [ -d "$data/train" ] && top=$data/train
  classes=$(find -L "$top" -mindepth 1 -maxdepth 1 -type d -not -name '.*' | wc -l)
  [ "$classes" -ge 2 ] || die "$top has $classes class folders, at least 2 are needed: expected $top/CLASS/IMAGE"
  # The name is the sweep's and the data's: another folder is another data set and another table.
  name=$(basename "$data" | tr -c 'a-zA-Z0-9\n' '-')-$(printf '%s' "$data" | cksum | cut -d' ' -f1)
  mkdir -p "$ABLATE_HOME"
  sweep=$ABLATE_HOME/$name.yaml
  sed -e "s/@NAME@/$name/; s/@CLASSES@/$classes/" sweeps/demo/image-folder.yaml.in >"$sweep"
  options=(--data "$name=$data")
  # a running ablate may not know the folder
  [ -f "$ABLATE_HOME/run/up.json" ] && ablate down >/dev/null 2>&1 && say "Restarted, to know the folder $data"
fi

say "Starting ablate in $ABLATE_HOME"
cores=$(nproc)
ablate up --detach --slots "$((cores < 8 ? cores : 8))" --threads 1 "${options[@]}"
say "What $sweep will run"
ablate plan "$sweep"
say "Submitting it, and watching its table fill"
ablate submit "$sweep" --watch
name=$(sed -n 's/^name: *//p' "$sweep")
say "The table and its statistics (also as --format markdown, csv, latex, html, json)"
ablate table "$name" --stats
printf '\n'
say "Dashboard: $(sed -E 's/.*"url": *"([^"]*)".*/\1/' "$ABLATE_HOME/run/up.json")sweeps/$name"
say "Everything is in $ABLATE_HOME/results.db. Stop it with: ABLATE_HOME=$ABLATE_HOME ${BUILD:-build}/bin/ablate down"
