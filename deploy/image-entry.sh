#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The entry point of the container image: scheduler | worker | health, or any program, with its arguments.
case ${1-} in
  scheduler | worker)
    program=ablate-$1
    shift
    exec "$program" "$@"
    ;;
  health) ;;
  '') exec ablate --help ;;
  *) exec "$@" ;;
esac

# What HEALTHCHECK asks: of a scheduler what /healthz says, of a worker whether it runs. The scheduler's dashboard is where
# ABLATE_HEALTH_URL says (with TLS also CURL_CA_BUNDLE: its authority).
for process in /proc/[0-9]*; do
  read -r name 2>/dev/null <"$process/comm" || continue
  case $name in
    ablate-schedule) exec curl --silent --show-error --fail --max-time 5 "${ABLATE_HEALTH_URL:-http://127.0.0.1:8571/healthz}" ;;
    ablate-worker) exit 0 ;;
  esac
done
echo "neither a scheduler nor a worker runs here" >&2
exit 1
