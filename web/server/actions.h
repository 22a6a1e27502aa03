// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/thread_pool.hpp>

#include <array>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "ablate/v1/access.pb.h"
#include "web/server/answer.h"
#include "web/server/net.h"
#include "web/server/server.h"

namespace abl::web {

/// The methods of ablate.v1 that a dashboard offers. Results are removed only from the command line, which
/// asks for confirmation. Whoever creates a token sends its digest: the token itself stays in the browser.
inline constexpr std::array<const char*, 17> kOffered{
    "Sweeps.Validate",     "Sweeps.Plan",        "Sweeps.Submit",      "Sweeps.ExtendSweep",
    "Sweeps.CancelSweep",  "Sweeps.CancelTrial", "Sweeps.PauseSweep",  "Sweeps.ResumeSweep",
    "Sweeps.AdjustSweep",  "Sweeps.RetrySweep",  "Sweeps.RenameSweep", "Sweeps.AnnotateSweep",
    "Workers.DrainWorker", "Access.ListTokens",  "Access.CreateToken", "Access.RevokeToken",
    "Access.ListAudit"};

/// Carries out what people do from a dashboard: each action is a method of the services, called with the JSON
/// of its request (docs/http-api.md). Thread: any.
class Actions {
 public:
  virtual ~Actions() = default;
  /// Who asks; nothing: the user of this machine who runs the dashboard.
  using Asker = std::optional<Doorkeeper::Holder>;

  /// Writes what `who` may do here into `caller`. Does not block.
  virtual void introduce(const Asker& who, ablate::v1::Caller& caller) const = 0;
  /// The JSON Schema of sweep files.
  virtual const std::string& schema() const = 0;

  /// Calls `method`, or refuses to, and then `done` once, on any thread, with the JSON of its response or an
  /// error. `gone`: nobody waits for the answer any more, so a method that changes nothing is cancelled.
  virtual void act(const Asker& who, const std::string& method, const std::string& request,
                   std::stop_token gone, std::function<void(Answer)> done) = 0;
  /// Cancels what is under way and returns when all of it is answered; refuses what comes afterwards.
  virtual void finish() = 0;
};

/// The actions under way, whose number and size are bounded. Thread: the network thread.
class ActionDesk {
 public:
  /// A sweep file has 4 MiB; in JSON its line ends and quotes take two bytes each.
  static constexpr std::uint64_t kMostBytes = 10 << 20;
  static constexpr std::size_t kMostAtOnce = 16;
  static constexpr std::string_view kPath = "/api/v1/actions/*";
  static constexpr const char* kReadOnly = "this dashboard shows a results file, which is read-only";

  /// `actions`: null: this dashboard is read-only.
  explicit ActionDesk(Actions* actions) : actions_{actions} {}
  ~ActionDesk() { finish(); }

  bool open() const { return actions_ != nullptr; }
  /// What `whoami` answers about who asks. `why_not`: why nobody may change anything, or empty.
  void introduce(const Actions::Asker& who, const std::string& why_not, ablate::v1::Caller& caller) const;
  Answer schema() const;

  /// Counts one request that is being read or carried out, as long as this lives.
  class Place {
   public:
    explicit Place(ActionDesk& desk) : desk_{desk} { ++desk_.at_once_; }
    ~Place() { --desk_.at_once_; }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    ActionDesk& desk_;
  };
  bool full() const { return at_once_ >= kMostAtOnce; }

  /// Carries out one action. The request is parsed and started on a thread of the desk's, as JSON of some
  /// megabytes takes a while. The coroutine waits for the answer whatever happens.
  net::awaitable<Answer> act(Actions::Asker who, std::string method, std::string request,
                             std::stop_token gone);
  /// Waits until all are answered.
  void finish();

 private:
  struct Begin;
  Actions* const actions_;
  std::size_t at_once_ = 0;
  net::thread_pool reading_{1};
};

}  // namespace abl::web
