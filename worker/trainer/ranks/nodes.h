// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "protocol/events.h"
#include "worker/trainer/ranks/rendezvous.h"

namespace abl::ranks {

/// What one machine does of a run over several. The first one's trainer keeps the store.
struct NodePlace {
  int node = 0, nodes = 1;
  int first_rank = 0, ranks = 1;  ///< of all machines
  int local_ranks = 1;
  std::string address;  ///< at which the other machines reach this one
  std::string join;     ///< HOST:PORT of the store; of the first one empty
  std::string key;      ///< of the run: who has another one is of another run, or of another attempt
  std::chrono::milliseconds patience = std::chrono::minutes{5};  ///< until all have come
  std::chrono::milliseconds silence = std::chrono::minutes{1};   ///< then a machine is gone
};

/// How the ranks of a machine ended, in its words.
struct NodeEnd {
  protocol::End end;
  bool consequence = false;  ///< another machine's end brought them down
};

/// The machines of a run, as one of them sees them: each says in the store that it is alive, that it wants to
/// stop, and how its ranks ended. A thread of its own reads and writes there, so that a machine that hangs,
/// or is cut off, holds nobody up. Thread: one.
class Nodes {
 public:
  /// Of the first machine: keeps the store.
  Nodes(const NodePlace& place, const RendezvousServer& server);
  /// Of another one: reaches it.
  /// Throws: Error{kUnavailable} where nobody answers, Error{kFailedPrecondition} where another run's ranks
  /// meet there, or this machine's have already come.
  explicit Nodes(const NodePlace& place);
  ~Nodes();
  Nodes(const Nodes&) = delete;
  Nodes& operator=(const Nodes&) = delete;

  const NodePlace& place() const { return place_; }
  bool first() const { return place_.node == 0; }

  /// Why the run cannot go on for what another machine met, or did not say any more; empty: it can.
  std::string trouble() const;
  /// Asks the first machine to stop the run, with a checkpoint.
  void ask_to_stop();
  /// Which machine has asked for that; empty: none has.
  std::string asked_by() const;
  /// Says how the ranks here ended; waits a moment until that is in the store.
  void say_end(const NodeEnd& end);
  /// Of the first machine: waits until the others have said how they ended, or are gone, or for so long.
  void await_ends(std::chrono::milliseconds patience) const;
  /// Of the first machine: one that has not said how its ranks ended; empty: all have.
  std::string unheard() const;
  /// The first end of another machine that is a failure of its own, with its name.
  std::optional<NodeEnd> culprit() const;

 private:
  struct State;
  static void watch(const std::shared_ptr<State>& state);
  const NodePlace place_;
  std::shared_ptr<State> state_;
};

}  // namespace abl::ranks
