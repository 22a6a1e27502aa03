// SPDX-License-Identifier: Apache-2.0
#include "scheduler/store_lock.h"

#include <fmt/format.h>

#include <fstream>
#include <string>

#include "base/error.h"

namespace abl::scheduler {
namespace {

FileLock lock_of(const std::filesystem::path& store) {
  const std::filesystem::path file = store.string() + ".lock";
  if (auto lock = FileLock::try_lock(file)) return *std::move(lock);
  std::string holder;
  std::getline(std::ifstream{file}, holder);
  throw Error{Code::kUnavailable,
              fmt::format("store {}{} is in use by another scheduler: use or stop that one", store.string(),
                          holder.empty() ? "" : fmt::format(" (process {})", holder))};
}

}  // namespace

StoreLock::StoreLock(const std::filesystem::path& store) : lock_{lock_of(store)} {
  lock_.remove_after(lock_.made_file());
  lock_.sign();
}

}  // namespace abl::scheduler
