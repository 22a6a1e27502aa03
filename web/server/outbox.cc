// SPDX-License-Identifier: Apache-2.0
#include "web/server/outbox.h"

namespace abl::web {

Outbox::Entry::Entry(Outbox& outbox, Stream& stream, std::size_t bytes)
    : outbox_{outbox},
      parcel_{outbox.parcels_.insert(outbox.parcels_.end(), {&stream, bytes, Clock::now()})} {
  outbox_.bytes_ += bytes;
}

Outbox::Entry::~Entry() {
  outbox_.bytes_ -= parcel_->bytes;
  outbox_.parcels_.erase(parcel_);
}

void Outbox::Entry::note_progress() {
  parcel_->progress = Clock::now();
  outbox_.parcels_.splice(outbox_.parcels_.end(), outbox_.parcels_, parcel_);
}

bool Outbox::make_room(std::size_t bytes) {
  const Clock::time_point stalled = Clock::now() - kPatience;
  for (Parcel& parcel : parcels_) {
    if (bytes_ + bytes <= kMostBytes || parcel.progress > stalled) break;
    parcel.stream->close();  // its coroutine ends by an error
    bytes_ -= parcel.bytes;  // … and gives back nothing more
    parcel.bytes = 0;
  }
  return bytes_ + bytes <= kMostBytes;
}

}  // namespace abl::web
