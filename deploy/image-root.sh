#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# image-root.sh ARCHIVE ROOT: puts what a container image has beside its base below ROOT: the programs of an archive of
# 'ablate bundle --of all' with their libraries, links to them, the entry point and a folder for results. Used by
# deploy/Containerfile and by the test of the image.
set -euo pipefail
[ $# = 2 ] || { echo "image-root: expected ARCHIVE ROOT" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd) archive=$1 root=$2
readonly USER_ID=10001     # of the image; nobody else's

mkdir -p "$root/opt/ablate" "$root/usr/local/bin" "$root/var/lib"
tar -xf "$archive" -C "$root/opt/ablate" --strip-components=1 --no-same-owner
for program in ablate ablate-scheduler ablate-worker; do
  [ -x "$root/opt/ablate/bin/$program" ] || {
    echo "image-root: $archive has no bin/$program; expected an archive of 'ablate bundle --of all'" >&2; exit 2; }
done
for program in "$root"/opt/ablate/bin/*; do
  ln -sf "/opt/ablate/bin/${program##*/}" "$root/usr/local/bin/${program##*/}"
done
install -m 0755 "$here/image-entry.sh" "$root/usr/local/bin/ablate-image"
install -d -m 0700 "$root/var/lib/ablate"
[ "$(id -u)" != 0 ] || chown "$USER_ID:$USER_ID" "$root/var/lib/ablate"
