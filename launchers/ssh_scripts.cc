// SPDX-License-Identifier: Apache-2.0
#include "launchers/ssh_scripts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/error.h"
#include "base/printable.h"

// Of several scripts: whether the process that a file names is the one that it was written by.
#define ABL_ALIVE                                                                 \
  "boot=$(cat /proc/sys/kernel/random/boot_id)\n"                                 \
  "alive() {\n"                                                                   \
  "  pid='' begin='' at='' since=''\n"                                            \
  "  [ ! -r \"$1/pilot.pid\" ] || read -r pid begin at since <\"$1/pilot.pid\"\n" \
  "  case $pid in '' | *[!0-9]*) return 1 ;; esac\n"                              \
  "  [ \"$at\" = \"$boot\" ] || return 1\n"                                       \
  "  set -- $(sed 's/.*) //' \"/proc/$pid/stat\" 2>/dev/null)\n"                  \
  "  [ \"${1-Z}\" != Z ] && [ \"${20-}\" = \"$begin\" ]\n"                        \
  "}\n"

namespace abl::launchers::ssh {

const std::string_view kList = ABL_ALIVE R"sh(
echo "ablate-machine $(date +%s)"
cd -- "$1/$2/pilots" 2>/dev/null || return 0
for pilot in *; do
  [ -d "$pilot" ] || continue
  state=killed code='' until=''
  if alive "$pilot"; then
    state=running
  elif [ -r "$pilot/pilot.exit" ]; then
    state=exited
    read -r code until <"$pilot/pilot.exit"
  elif [ -z "$pid" ]; then
    state=starting since=$(stat -c %Y -- "$pilot")
  elif [ "$at" != "$boot" ]; then
    state=rebooted
  else  # what waits for it says so in a moment, or was killed too
    sleep 0.3
    [ -r "$pilot/pilot.exit" ] || echo "gone $(date +%s)" >"$pilot/pilot.exit"
    read -r code until <"$pilot/pilot.exit"
    state=exited
  fi
  said=''
  case $code in '' | 0 | gone) ;; *) said=$(tail -n 1 "$pilot/worker.log" 2>/dev/null | cut -c 1-300) ;; esac
  printf 'ablate-pilot %s|%s|%s|%s|%s|%s\n' "$pilot" "$state" "$since" "$until" "$code" "$said"
done
)sh";

const std::string_view kPrepare = R"sh(
umask 077
mkdir -p -- "$1/$2/bundles" && cd -- "$1/$2/bundles" || exit 1
if [ -x "$3/bin/ablate-worker" ]; then
  echo "ablate-bundle ready"
  return 0
fi
for other in ".${4%%+*}+"*; do  # of another build, and half unpacked
  [ "$other" = ".$4.part" ] || rm -rf -- "$other"
done
size=0
[ ! -f ".$4.part" ] || size=$(wc -c <".$4.part")
echo "ablate-bundle $size"
)sh";

const std::string_view kUnpack = ABL_ALIVE R"sh(
umask 077
cd -- "$1/$2/bundles" || exit 1
digest=$3 part=.$4.part new=.$4.new
shift 4
short=$(printf '%.16s' "$digest")
sum=$(sha256sum <"$part" | cut -c 1-64)
if [ "$sum" != "$digest" ]; then
  rm -f -- "$part"
  echo "the copy of the bundle is not what was sent (SHA-256 $sum, not $digest)" >&2
  exit 1
fi
rm -rf -- "$new"
mkdir -- "$new" && tar -xf "$part" -C "$new" --strip-components=1 </dev/null
unpacked=$?
rm -f -- "$part"
if [ "$unpacked" -ne 0 ] || [ ! -x "$new/bin/ablate-worker" ]; then
  rm -rf -- "$new"
  [ "$unpacked" -ne 0 ] || echo "the archive has no bin/ablate-worker: 'ablate bundle' makes one" >&2
  exit 1
fi
sync -f "$new" 2>/dev/null || sync
mv -T -- "$new" "$short" 2>/dev/null || rm -rf -- "$new"  # another was faster
for bundle in *; do
  for keep in "$short" "$@"; do
    [ "$bundle" != "$keep" ] || continue 2
  done
  for pilot in ../pilots/*; do
    [ "$(cat "$pilot/pilot.bundle" 2>/dev/null)" != "$bundle" ] || ! alive "$pilot" || continue 2
  done
  rm -rf -- "$bundle"
done
)sh";

const std::string_view kStart = R"sh(
umask 077
home=$1 store=$2 pilot=$3 bundle=$4 program=$5 token=$6 authorities=$7 runs=$8 outer=$9
shift 9
inner=$1
shift
mkdir -p -- "$home/$store/pilots" && root=$(cd -- "$home" && pwd -P) || exit 1
folder=$root/$store/pilots/$pilot
fail() {
  rm -rf -- "$folder"
  [ -z "$1" ] || echo "$1" >&2
  exit 1
}
[ -z "$bundle" ] || program=$root/$store/bundles/$bundle/bin/ablate-worker
if [ ! -x "$program" ]; then
  echo "$program: there is no such program, or it may not be executed" >&2
  exit 1
fi
if ! command -v setsid >/dev/null; then
  echo "setsid is not installed; expected util-linux" >&2
  exit 1
fi
if [ -d "$folder" ]; then  # asked before, and the answer was lost
  echo ablate-started
  return 0
fi
mkdir -- "$folder" || exit 1
printf '%s\n' "$bundle" >"$folder/pilot.bundle" || fail
set -- "$@" --home "$folder"
[ -z "$runs" ] || set -- "$@" --runs-root "$root/runs"
if [ -n "$token" ]; then
  printf '%s\n' "$token" >"$folder/join.token" || fail
  set -- "$@" --join-token-file "$folder/join.token"
  if [ -n "$authorities" ]; then
    printf '%s\n' "$authorities" >"$folder/ca.crt" || fail
    set -- "$@" --ca "$folder/ca.crt"
  fi
fi
setsid -f /bin/sh -c "$outer" ablate-pilot "$inner" "$folder" "$program" "$@" </dev/null >/dev/null 2>&1 || fail "setsid failed"
i=0
while [ ! -e "$folder/pilot.pid" ] && [ ! -e "$folder/pilot.exit" ] && [ $i -lt 100 ]; do
  sleep 0.1
  i=$((i + 1))
done
[ -e "$folder/pilot.pid" ] || fail "its worker was not started within 10 s"
find "$root/$store/pilots" -mindepth 2 -maxdepth 2 -name pilot.exit -mtime +30 -exec /bin/sh -c 'rm -rf -- "${1%/*}"' sh {} \; </dev/null
echo ablate-started
)sh";

// Both in processes of their own: the outer one is not the worker's, so that it can say how that ended.
const std::string_view kOuter = R"sh(inner=$1
shift
folder=$1
/bin/sh -c "$inner" ablate-worker "$@"
code=$?
printf '%s %s\n' "$code" "$(date +%s)" >"$folder/pilot.exit.new" && mv -- "$folder/pilot.exit.new" "$folder/pilot.exit"
)sh";

const std::string_view kInner = R"sh(folder=$1
shift
begin=$(sed 's/.*) //' "/proc/$$/stat" | cut -d ' ' -f 20)
printf '%s %s %s %s\n' "$$" "$begin" "$(cat /proc/sys/kernel/random/boot_id)" "$(date +%s)" >"$folder/pilot.pid.new" &&
  mv -- "$folder/pilot.pid.new" "$folder/pilot.pid" || exit 1
exec "$@" >>"$folder/worker.log" 2>&1
)sh";

const std::string_view kSignal = ABL_ALIVE R"sh(
cd -- "$1/$2/pilots" 2>/dev/null || return 0
signal=$3
shift 3
for pilot in "$@"; do
  if alive "$pilot"; then kill -s "$signal" "$pid"; fi
done
return 0
)sh";

const std::string_view kRemove = ABL_ALIVE R"sh(
cd -- "$1/$2/pilots" 2>/dev/null || return 0
shift 2
while [ -n "$1" ]; do
  rm -f -- "$1/join.token" || exit 1
  shift
done
shift
for pilot in "$@"; do
  alive "$pilot" || rm -rf -- "$pilot" || exit 1
done
return 0
)sh";

namespace {

using std::chrono::seconds;

constexpr std::string_view kMachine = "ablate-machine ", kPilot = "ablate-pilot ", kBundle = "ablate-bundle ";
constexpr int kSshFailed = 255;  // the exit code of ssh itself
constexpr long long kLongestLife = 100LL * 365 * 24 * 3600;
constexpr seconds kTimeToStart{120};  // of one without a process, which is then no more to come

std::optional<long long> whole(std::string_view text) {
  long long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size() || value < 0)
    return std::nullopt;
  return value;
}

/// Calls `take` with each line that begins so, without its beginning.
template <class Take>
void each_line(std::string_view text, std::string_view beginning, Take take) {
  while (!text.empty()) {
    const auto end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    if (line.starts_with(beginning)) take(line.substr(beginning.size()));
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
}

}  // namespace

std::string last_words(const std::string& text) {
  const auto end = text.find_last_not_of(" \r\n\t");
  if (end == std::string::npos) return {};
  const auto begin = text.find_last_of('\n', end);
  std::string line = text.substr(begin == std::string::npos ? 0 : begin + 1, end - (begin + 1) + 1);
  if (line.size() > 300) line.resize(300);
  return printable_line(line);
}

std::string heard(const CallAnswer& answer, const std::stop_token& stop) {
  if (answer.code == 0) return answer.out;
  if (stop.stop_requested()) throw Error{Code::kCancelled, "it was told to end before it had started"};
  std::string words = answer.ended.empty() ? last_words(answer.err) : answer.ended;
  if (answer.code == -1 || answer.code == kSshFailed)
    throw Error{Code::kUnavailable, words.empty() ? "ssh failed and said nothing" : words};
  throw Error{Code::kFailedPrecondition, words.empty() ? fmt::format("exit code {}", answer.code) : words};
}

std::optional<std::vector<FoundPilot>> parse_list(std::string_view text) {
  std::optional<long long> now;
  each_line(text, kMachine, [&](std::string_view rest) { now = whole(rest); });
  if (!now) return std::nullopt;
  std::vector<FoundPilot> found;
  each_line(text, kPilot, [&](std::string_view rest) {
    std::array<std::string_view, 6> fields{};  // the last may have anything in it
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const auto end = i + 1 < fields.size() ? rest.find('|') : rest.size();
      if (end == std::string_view::npos) return;
      fields[i] = rest.substr(0, end);
      rest = rest.substr(std::min(end + 1, rest.size()));
    }
    FoundPilot pilot{.name = std::string{fields[0]}};
    const auto since = whole(fields[2]), until = whole(fields[3]);
    const auto between =
        [&](std::optional<long long> end) {  // no machine has run for longer, whatever it says
          return seconds{since && end ? std::clamp(*end - *since, 0LL, kLongestLife) : 0};
        };
    if (fields[1] == "running") {
      pilot.life = Life::kRunning;
      pilot.ran = between(now);
    } else if (fields[1] == "exited") {
      pilot.life = fields[4] == "gone" ? Life::kKilled : Life::kExited;
      pilot.ran = between(until);
      const auto code = whole(fields[4]);
      if (pilot.life == Life::kExited) pilot.code = code && *code < 256 ? static_cast<int>(*code) : 255;
      pilot.said = printable_line(fields[5]);
    } else if (fields[1] == "starting") {
      pilot.life = between(now) < kTimeToStart ? Life::kStarting : Life::kKilled;
    } else if (fields[1] == "killed") {
      pilot.life = Life::kKilled;
    } else if (fields[1] == "rebooted") {
      pilot.life = Life::kRebooted;
    } else {
      return;
    }
    if (found.size() < kMostPilots) found.push_back(std::move(pilot));
  });
  return found;
}

std::optional<std::uint64_t> parse_prepared(std::string_view text) {
  std::optional<std::uint64_t> size;
  bool understood = false;
  each_line(text, kBundle, [&](std::string_view rest) {
    const auto value = whole(rest);
    understood = value || rest == "ready";
    size = value ? std::optional{static_cast<std::uint64_t>(*value)} : std::nullopt;
  });
  if (!understood)
    throw Error{Code::kUnavailable, fmt::format("expected what is there of the bundle; it said '{}'",
                                                printable_line(text.substr(0, 200)))};
  return size;
}

}  // namespace abl::launchers::ssh
