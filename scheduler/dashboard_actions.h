// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "scheduler/access_control.h"
#include "web/server/actions.h"

namespace abl::scheduler {

/// Carries out what people do from the dashboard, as calls over a gRPC channel within this process: services,
/// roles and audit are those of every other client.
class DashboardActions final : public web::Actions {
 public:
  explicit DashboardActions(AccessControl& access);
  ~DashboardActions() override { finish(); }

  /// The server runs: from now on actions are carried out.
  void connect(std::shared_ptr<grpc::Channel> channel);

  void introduce(const Asker& who, ablate::v1::Caller& caller) const override;
  const std::string& schema() const override { return schema_; }
  void act(const Asker& who, const std::string& method, const std::string& request, std::stop_token gone,
           std::function<void(web::Answer)> done) override;
  void finish() override;

 private:
  struct Call;

  void begin(const std::shared_ptr<Call>& call);
  static web::Answer answer_of(Call& call, const grpc::Status& status);
  void end(const std::shared_ptr<Call>& call, const grpc::Status& status);

  AccessControl& access_;
  const std::string own_account_;  // asked for once: a directory server may take its time
  const std::string schema_;
  std::mutex mutex_;
  std::condition_variable all_answered_;
  std::shared_ptr<grpc::Channel> channel_;  // none: not yet, or no more
  std::list<std::shared_ptr<Call>> calls_;  // under way
};

}  // namespace abl::scheduler
