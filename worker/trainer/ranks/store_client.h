// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "worker/trainer/ranks/rendezvous.h"

namespace abl::ranks {

using StorePointer = c10::intrusive_ptr<c10d::Store>;

struct RendezvousServer::Store {
  c10::intrusive_ptr<c10d::TCPStore> store;
};

/// What of a store belongs to the run of this key: who has another one meets nobody there.
inline StorePointer under_key(StorePointer store, const std::string& key) {
  if (key.empty()) return store;
  return c10::make_intrusive<c10d::PrefixStore>(key, std::move(store));
}

/// Reaches the store that another process keeps, within `patience`, by which it also waits for what is not
/// there yet. Throws: c10::DistError where it does not answer.
inline StorePointer reach_store(const Rendezvous& rendezvous, const std::string& key,
                                std::chrono::milliseconds patience) {
  c10d::TCPStoreOptions options;
  options.port = rendezvous.port;
  options.timeout = patience;
  return under_key(c10::make_intrusive<c10d::TCPStore>(rendezvous.host, options), key);
}

}  // namespace abl::ranks
