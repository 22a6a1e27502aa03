// SPDX-License-Identifier: Apache-2.0
#include "scheduler/server.h"

#include <fmt/format.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/support/server_interceptor.h>

#include <condition_variable>
#include <fstream>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "access/listen_address.h"
#include "base/error.h"
#include "base/file.h"
#include "base/file_lock.h"
#include "base/made_paths.h"
#include "web/server/server.h"

namespace abl::scheduler {
namespace {

/// Throws: Error{kUnavailable} naming the process that has the store.
FileLock lock_of(const std::filesystem::path& store) {
  const std::filesystem::path file = store.string() + ".lock";
  if (auto lock = FileLock::try_lock(file)) return *std::move(lock);
  std::string holder;
  std::getline(std::ifstream{file}, holder);
  throw Error{Code::kUnavailable,
              fmt::format("store {}{} is in use by another scheduler: use or stop that one", store.string(),
                          holder.empty() ? "" : fmt::format(" (process {})", holder))};
}

constexpr auto kTick = std::chrono::milliseconds{500};
constexpr auto kGoodbye = std::chrono::seconds{2};

namespace fs = std::filesystem;
using access::ListenAddress;

/// Adds what is wrong with the store to the end of every answer, as metadata: answers are read from a state
/// that may be lost, and whoever reads one should know. `trouble` is called on gRPC's threads.
class TroubleNotes final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit TroubleNotes(std::function<std::string()> trouble) : trouble_{std::move(trouble)} {}

  grpc::experimental::Interceptor* CreateServerInterceptor(grpc::experimental::ServerRpcInfo*) override {
    return new Note{trouble_};
  }

 private:
  class Note final : public grpc::experimental::Interceptor {
   public:
    explicit Note(const std::function<std::string()>& trouble) : trouble_{trouble} {}
    void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
      using grpc::experimental::InterceptionHookPoints;
      constexpr std::size_t kLongest = 2000;  // metadata has a limit
      if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS))
        if (const std::string trouble = trouble_(); !trouble.empty())
          methods->GetSendTrailingMetadata()->emplace("ablate-trouble-bin", trouble.substr(0, kLongest));
      methods->Proceed();
    }

   private:
    const std::function<std::string()>& trouble_;
  };

  const std::function<std::string()> trouble_;
};

/// The folder of the store, made where it is absent.
fs::path with_folder(const fs::path& store, MadePaths& made) {
  if (store.empty()) throw Error{Code::kInvalidArgument, "no results file: pass --store FILE"};
  if (const auto folder = store.parent_path(); !folder.empty()) {
    made.add(make_folder(folder));
    access::protect_home(folder);
  }
  return store;
}

/// The files of a store that is not there yet.
fs::path new_store(const fs::path& store, MadePaths& made) {
  if (!fs::exists(store)) made.add({store, store.string() + "-wal", store.string() + "-shm"});
  return store;
}

}  // namespace

/// One scheduler a store: a lock on `<store>.lock`, held until the object, or the process, ends. A file that
/// it made goes with it unless `keep` is called.
class StoreLock {
 public:
  /// Throws: Error{kUnavailable} naming the process that has the store.
  explicit StoreLock(const std::filesystem::path& store) : lock_{lock_of(store)} {
    lock_.remove_after(lock_.made_file());
    lock_.sign();
  }
  void keep() { lock_.remove_after(false); }

 private:
  FileLock lock_;
};

class SchedulerServer::Impl {
 public:
  explicit Impl(const ServerOptions& options)
      : addresses_{checked(options)},
        lock_{with_folder(options.scheduler.store, folders_)},
        store_{new_store(options.scheduler.store, files_)},
        scheduler_{options.scheduler, clock_} {
    if (options.http_port) {
      web_ = std::make_unique<web::Server>(
          web::ServerOptions{.store = options.scheduler.store, .port = *options.http_port});
      web_subscription_ = scheduler_.feed().subscribe([this](const std::set<storage::Change>& changes) {
        web_->set_trouble(scheduler_.coordinator().trouble());
        for (const storage::Change& change : changes) web_->publish(change);
      });
    }
    serve();
    ticker_ = std::jthread{[this](std::stop_token stop) { tick_until(std::move(stop)); }};
    folders_.keep();
    files_.keep();
    lock_.keep();
  }

  ~Impl() {
    ticker_.request_stop();
    ticker_.join();
    scheduler_.stop_counting();
    scheduler_.coordinator().close_sessions();
    server_->Shutdown(std::chrono::system_clock::now() + kGoodbye);
    server_->Wait();
  }

  std::vector<std::string> addresses() const {
    std::vector<std::string> texts;
    for (const ListenAddress& address : addresses_) texts.push_back(address.text());
    return texts;
  }
  std::string dashboard() const { return web_ ? web_->url() : std::string{}; }

 private:
  /// What can be refused before anything is opened or created.
  static std::vector<ListenAddress> checked(const ServerOptions& options) {
    options.scheduler.policy.check();
    const std::vector<std::string>& listen = options.listen;
    if (listen.empty()) throw Error{Code::kInvalidArgument, "no listen address: pass --listen ADDRESS"};
    std::vector<ListenAddress> parsed;
    for (const std::string& text : listen) parsed.push_back(access::parse_listen_address(text));
    for (const ListenAddress& address : parsed) access::check(address);
    if (options.http_port) access::check({.host = "127.0.0.1", .port = *options.http_port}, "--http-port");
    return parsed;
  }

  void serve() {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    grpc::ServerBuilder builder;
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT,
                               0);  // two servers on one port would share its calls silently
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);  // a machine that vanished is noticed
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
    builder.SetMaxReceiveMessageSize(16 << 20);  // a sweep file has 4 MiB at most, a batch of a run less
    std::vector<int> ports(addresses_.size(), 0);
    for (std::size_t i = 0; i < addresses_.size(); ++i) {
      folders_.add(access::prepare(addresses_[i]));
      builder.AddListeningPort(addresses_[i].text(), grpc::InsecureServerCredentials(), &ports[i]);
    }
    scheduler_.register_services(builder);
    std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> interceptors;
    interceptors.push_back(
        std::make_unique<TroubleNotes>([this] { return scheduler_.coordinator().trouble(); }));
    builder.experimental().SetInterceptorCreators(std::move(interceptors));
    server_ = builder.BuildAndStart();
    for (std::size_t i = 0; i < addresses_.size(); ++i) {
      if (!server_ || ports[i] == 0)
        throw Error{Code::kUnavailable,
                    fmt::format("cannot listen on {}: in use or not permitted", addresses_[i].text())};
      if (addresses_[i].socket.empty()) addresses_[i].port = static_cast<std::uint16_t>(ports[i]);
    }
  }

  void tick_until(std::stop_token stop) {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock{mutex};
    while (!stop.stop_requested()) {
      scheduler_.coordinator().tick();
      wake.wait_for(lock, stop, kTick, [] { return false; });
    }
  }

  SystemClock clock_;
  std::vector<ListenAddress> addresses_;
  // What is refused goes in the opposite order: the store's files while the lock is held, so that they are
  // ours.
  MadePaths folders_;
  StoreLock lock_;
  MadePaths files_;
  fs::path store_;
  Scheduler scheduler_;
  std::unique_ptr<web::Server> web_;
  ChangeFeed::Subscription web_subscription_;
  std::unique_ptr<grpc::Server> server_;
  std::jthread ticker_;
};

SchedulerServer::SchedulerServer(const ServerOptions& options) : impl_{std::make_unique<Impl>(options)} {}
SchedulerServer::~SchedulerServer() = default;
std::vector<std::string> SchedulerServer::addresses() const { return impl_->addresses(); }
std::string SchedulerServer::dashboard() const { return impl_->dashboard(); }

}  // namespace abl::scheduler
