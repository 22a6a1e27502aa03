// SPDX-License-Identifier: Apache-2.0
// A wall clock that can be set for the programs of a test alone: preloaded, it adds to CLOCK_REALTIME the
// nanoseconds that stand, as eight bytes, in the file $CHAOS_CLOCK. Clocks that nobody can set stay as they
// are.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace {

const volatile std::int64_t* offset = nullptr;
constexpr std::int64_t kSecond = 1'000'000'000;

__attribute__((constructor)) void open_offset() {
  const char* file = std::getenv("CHAOS_CLOCK");
  const int opened = file ? ::open(file, O_RDONLY | O_CLOEXEC) : -1;
  if (opened < 0) return;
  void* const mapped = ::mmap(nullptr, sizeof *offset, PROT_READ, MAP_SHARED, opened, 0);
  ::close(opened);
  if (mapped != MAP_FAILED) offset = static_cast<const volatile std::int64_t*>(mapped);
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const int result = static_cast<int>(::syscall(SYS_clock_gettime, clock, now));
  if (result != 0 || !offset || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return result;
  const std::int64_t shifted = now->tv_sec * kSecond + now->tv_nsec + *offset;
  now->tv_sec = shifted / kSecond;
  now->tv_nsec = shifted % kSecond;
  return 0;
}

int gettimeofday(timeval* __restrict now, void* __restrict) noexcept {
  timespec precise{};
  clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* at) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}

}  // extern "C"
