#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# out/ablate-trainer.tar.gz: the sources of the trainer with the headers and the static libraries that they need (libjpeg-turbo,
# libpng with zlib, libwebp, libdeflate, OpenSSL's libcrypto). On a machine
# that has only CMake, a compiler and PyTorch >= 2.11:
#   tar xf ablate-trainer.tar.gz && cmake -S ablate-trainer -B build && cmake --build build -j
# (set ABLATE_PYTHON where PyTorch belongs to another python than `python3`)
set -euo pipefail
cd "$(dirname "$0")/.."
readonly LIMIT_MIB=20
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/ablate-trainer
mkdir -p "$root/third_party/include" "$root/third_party/lib" out

git ls-files -z CMakeLists.txt LICENSE NOTICE cmake base protocol images scoring config data models probes worker/trainer | xargs -0 cp --parents -t "$root"
sed -i 's/^option(ABLATE_ONLY_TRAINER \(.*\) OFF)$/option(ABLATE_ONLY_TRAINER \1 ON)/' "$root/CMakeLists.txt"
for folder in nlohmann fmt CLI gloo; do cp -r "/usr/include/$folder" "$root/third_party/include/"; done
for header in jpeglib.h jmorecfg.h jerror.h jconfig.h png.h pngconf.h pnglibconf.h; do  # jconfig.h lies in a folder of the architecture
  find /usr/include -name $header -exec cp {} "$root/third_party/include/" \;
done
cp /usr/include/libdeflate.h "$root/third_party/include/"
cp -r /usr/include/webp "$root/third_party/include/"
mkdir "$root/third_party/include/openssl"
find /usr/include -path '*/openssl/*.h' -exec cp {} "$root/third_party/include/openssl/" \;
for library in libjpeg62-turbo-dev:libjpeg.a libpng-dev:libpng.a zlib1g-dev:libz.a libwebp-dev:libwebpdemux.a libwebp-dev:libwebp.a libdeflate-dev:libdeflate.a libssl-dev:libcrypto.a; do
  file=$(find /usr/lib -name "${library#*:}" | head -n 1)
  [ -n "$file" ] || { echo "trainer-bundle: no ${library#*:}: install ${library%:*} (deploy/setup.sh does)" >&2; exit 1; }
  strip --strip-debug -o "$root/third_party/lib/${library#*:}" "$file"
done
mkdir -p "$root/third_party/licenses"
for package in nlohmann-json3-dev libfmt-dev libcli11-dev libjpeg62-turbo-dev libpng-dev zlib1g-dev libwebp-dev libdeflate-dev libssl-dev libgloo-dev; do
  cp "/usr/share/doc/$package/copyright" "$root/third_party/licenses/$package"
done

tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner -czf out/ablate-trainer.tar.gz ablate-trainer
bytes=$(stat -c %s out/ablate-trainer.tar.gz)
[ "$bytes" -le $((LIMIT_MIB << 20)) ] || { echo "trainer-bundle: $bytes bytes, at most $LIMIT_MIB MiB were allowed" >&2; exit 1; }
printf 'out/ablate-trainer.tar.gz  %s KiB\n' $((bytes >> 10))
