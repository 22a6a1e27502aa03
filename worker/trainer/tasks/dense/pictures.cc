// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/tasks/dense/pictures.h"

#include <utility>

#include "base/error.h"

namespace abl::tasks {

bool PicturesInMaking::work(const std::atomic<bool>& stop) {
  if (slots_.empty()) return taken_++ == 0;
  for (std::size_t place; !stop && (place = taken_++) < slots_.size();) {
    try {
      slots_[place].picture = prepared(place);
    } catch (...) {
      slots_[place].error = std::current_exception();
    }
    if (++done_ == slots_.size()) return true;
  }
  return false;
}

std::optional<images::Annotated> PicturesInMaking::prepared(std::size_t place) const {
  const std::uint32_t index = plan_.indices[place], among = plan_.replace_among;
  auto picture = plan_.prepare(index, place);
  for (std::uint32_t step = 1; !picture && step < among; ++step)
    picture = plan_.prepare((index + step) % among, place);
  if (!picture && among > 0) throw Error{Code::kDataLoss, "data: no readable images"};
  return picture;
}

std::vector<images::Annotated> PicturesInMaking::finish() {
  std::vector<images::Annotated> pictures;
  for (Slot& slot : slots_) {
    if (slot.error) std::rethrow_exception(slot.error);
    if (slot.picture) pictures.push_back(std::move(*slot.picture));
  }
  return pictures;
}

}  // namespace abl::tasks
