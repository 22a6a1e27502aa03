// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "tests/web/demo_store.h"
#include "tests/web/http_client.h"
#include "web/server/server.h"

namespace abl::web {

/// A dashboard of a demo store.
class ServerTest : public testing::Test {
 protected:
  ServerTest() {
    std::string name = (std::filesystem::temp_directory_path() / "ablate-web-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    demo_.emplace(folder_ / "results.db");
    server_.emplace(options());
  }
  ~ServerTest() override {
    server_.reset();
    demo_.reset();
    std::filesystem::remove_all(folder_);
  }
  ServerOptions options() const { return {.store = folder_ / "results.db"}; }
  Reply get(const std::string& target, const std::map<std::string, std::string>& headers = {}) {
    return HttpClient{server_->port()}.get(target, headers);
  }
  void expect_error(const Reply& reply, int status, const std::string& code, const std::string& message) {
    EXPECT_EQ(reply.status, status) << reply.body;
    EXPECT_EQ(reply.headers.at("content-type"), "application/json");
    EXPECT_EQ(reply.json().at("code"), code);
    EXPECT_THAT(reply.json().at("message").get<std::string>(), testing::HasSubstr(message));
  }

  std::filesystem::path folder_;
  std::optional<DemoStore> demo_;
  std::optional<Server> server_;
};

}  // namespace abl::web
