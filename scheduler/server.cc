// SPDX-License-Identifier: Apache-2.0
#include "scheduler/server.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/support/server_interceptor.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <thread>

#include "access/listen_address.h"
#include "access/porter.h"
#include "access/tls.h"
#include "base/enum_names.h"
#include "base/error.h"
#include "base/file.h"
#include "base/file_lock.h"
#include "base/instruments.h"
#include "base/made_paths.h"
#include "protocol/failure.h"
#include "scheduler/dashboard_actions.h"
#include "scheduler/depot_service.h"
#include "scheduler/figures.h"
#include "web/server/answer.h"
#include "web/server/server.h"
#include "webhooks/courier.h"

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

constexpr const char* kStoreCheck = "store";  // of those that health tells of

}  // namespace

/// How often each method was called and how it ended; of those that are no streams, how long they took.
/// Thread: any.
class CallFigures {
 public:
  struct Method {
    std::string name;
    std::array<Tally, 17> calls;  // by gRPC's codes
    Histogram seconds{kLatencyBounds};
    bool streams = false;
  };

  CallFigures() {
    const auto* pool = google::protobuf::DescriptorPool::generated_pool();
    for (const char* name : {"Sweeps", "Runs", "Workers", "WorkerLink", "Access"}) {
      const auto* service = pool->FindServiceByName(fmt::format("ablate.v1.{}", name));
      for (int i = 0; service && i < service->method_count(); ++i)
        add(fmt::format("{}/{}", service->full_name(), service->method(i)->name()),
            service->method(i)->server_streaming() || service->method(i)->client_streaming());
    }
    add(kOther, true);
  }

  /// `path`: "/ablate.v1.Sweeps/Submit". What is not ours, health and reflection, is one.
  Method& method(std::string_view path) {
    const auto found = methods_.find(path.substr(std::min<std::size_t>(path.size(), 1)));
    return found == methods_.end() ? methods_.find(kOther)->second : found->second;
  }

  void expose(Exposition& exposition) const {
    exposition.counter("ablate_rpcs_total", "Calls over gRPC that have ended, by method and code.");
    for (const auto& [name, method] : methods_)
      for (std::size_t code = 0; code < method.calls.size(); ++code)
        if (code == 0 || method.calls[code].value() > 0)
          exposition.add(method.calls[code],
                         {{"method", name}, {"code", web::code_name(static_cast<Code>(code))}});
    exposition.histogram("ablate_rpc_seconds", "Time from a call to its end, of those that are no streams.");
    for (const auto& [name, method] : methods_)
      if (!method.streams) exposition.add(method.seconds, {{"method", name}});
  }

 private:
  static constexpr const char* kOther = "other";
  void add(const std::string& name, bool streams) { methods_[name].streams = streams; }
  std::map<std::string, Method, std::less<>> methods_;  // all that there are, before the first call
};

/// Counts calls, and adds to the end of every answer, as metadata, which version answers and what is wrong
/// here: answers are read from a state that may be lost, and whoever reads one should know.
class CallNotes final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  CallNotes(const web::Monitor& monitor, CallFigures& figures) : monitor_{monitor}, figures_{figures} {}

  grpc::experimental::Interceptor* CreateServerInterceptor(grpc::experimental::ServerRpcInfo* info) override {
    return new Note{monitor_, figures_.method(info->method())};
  }

 private:
  class Note final : public grpc::experimental::Interceptor {
   public:
    Note(const web::Monitor& monitor, CallFigures::Method& method) : monitor_{monitor}, method_{method} {}
    /// gRPC lets go of it when the call is over.
    ~Note() override {
      method_.calls.at(static_cast<std::size_t>(code_)).add();
      method_.seconds.add(std::chrono::steady_clock::now() - begun_);
    }
    Note(const Note&) = delete;
    Note& operator=(const Note&) = delete;

    void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
      using grpc::experimental::InterceptionHookPoints;
      constexpr std::size_t kLongest = 2000;  // metadata has a limit
      if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
        code_ = std::clamp(static_cast<int>(methods->GetSendStatus().error_code()), 0, 16);
        auto* metadata = methods->GetSendTrailingMetadata();
        metadata->emplace("ablate-version", ABLATE_VERSION);
        std::string health;
        for (const auto& [check, message] : monitor_.ailments()) {
          if (check == kStoreCheck) metadata->emplace("ablate-trouble-bin", message.substr(0, kLongest));
          health += (health.empty() ? "" : "; ") + message;
        }
        if (!health.empty()) metadata->emplace("ablate-health-bin", health.substr(0, kLongest));
      }
      methods->Proceed();
    }

   private:
    const web::Monitor& monitor_;
    CallFigures::Method& method_;
    const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
    int code_ = static_cast<int>(grpc::StatusCode::CANCELLED);  // where no status was sent
  };

  const web::Monitor& monitor_;
  CallFigures& figures_;
};

namespace {

constexpr auto kStuck = std::chrono::seconds{10};  // a job of the writer takes milliseconds

double number(std::size_t count) { return static_cast<double>(count); }
double seconds_of(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

/// What /metrics and /healthz say of a scheduler: what its parts have counted, and a few looks at the disk.
class SchedulerMonitor final : public web::Monitor {
 public:
  /// `certificate`: null: it serves plain text.
  SchedulerMonitor(fs::path store, Scheduler& scheduler, const CallFigures& calls,
                   const access::Porter& porter, const access::ServerCertificate* certificate)
      : store_{std::move(store)},
        scheduler_{scheduler},
        calls_{calls},
        porter_{porter},
        certificate_{certificate} {}

  void expose(Exposition& exposition) const override {
    const Figures& figures = scheduler_.coordinator().figures();
    expose_queue(exposition, *figures.standing.lock());
    expose_runs(exposition, figures);
    expose_store(exposition);
    calls_.expose(exposition);
    exposition.gauge("ablate_watchers", "Programs that watch a sweep over gRPC.")
        .add(number(scheduler_.watchers()));
    expose_access(exposition);
    if (const webhooks::Couriers* couriers = couriers_) expose_webhooks(exposition, couriers->figures());
  }
  /// Whose figures it says as well; they outlive it, or are taken away with null.
  void watch(const webhooks::Couriers* couriers) { couriers_ = couriers; }

  std::vector<Ailment> ailments() const override {
    std::vector<Ailment> ailments;
    if (const std::string trouble = scheduler_.coordinator().trouble(); !trouble.empty())
      ailments.push_back({kStoreCheck, trouble});
    const storage::Writer::Backlog backlog = scheduler_.writer().backlog();
    if (backlog.oldest >= kStuck)
      ailments.push_back({"writer", fmt::format("changes wait to be stored: {}, the oldest for {:.0f} s",
                                                backlog.jobs, seconds_of(backlog.oldest))});
    if (scheduler_.coordinator().has_lost_queue())
      ailments.push_back(
          {"queue",
           "a change of the queue could not be read: nothing is leased until it has been read anew"});
    return ailments;
  }

 private:
  void expose_access(Exposition& exposition) const {
    exposition.gauge("ablate_grpc_connections", "Connections over TCP that gRPC has.")
        .add(number(porter_.connections()));
    exposition
        .counter("ablate_grpc_connections_refused_total",
                 "Connections that were closed since their address, or all together, had too many.")
        .add(static_cast<double>(porter_.turned_away()));
    if (!certificate_) return;
    exposition.gauge("ablate_certificate_ends_timestamp_seconds",
                     "When a certificate that is served, or its authority's, or that of clients, ends.");
    std::set<std::string> names;  // a label is there once
    for (const access::CertificateTerm& term : certificate_->current()->terms)
      if (names.insert(term.name).second)
        exposition.add(Seconds{term.ends.time_since_epoch()}.count(),
                       {{"name", term.name}, {"kind", term.authority ? "authority" : "server"}});
  }

  static void expose_webhooks(Exposition& exposition, const webhooks::Couriers::Figures& figures) {
    exposition
        .counter("ablate_webhook_posts_total",
                 "Posts to webhooks: taken, failed (and tried again), dropped since they were refused or "
                 "nobody took them for too long.")
        .add(figures.taken, {{"outcome", "taken"}})
        .add(figures.failed, {{"outcome", "failed"}})
        .add(figures.dropped, {{"outcome", "dropped"}});
  }

  static void expose_queue(Exposition& exposition, const Figures::Standing& standing) {
    exposition.gauge("ablate_trials", "Trials that wait (queued; delayed: in a back-off) or are under way.")
        .add(number(standing.queue.ready), {{"state", "queued"}})
        .add(number(standing.queued - std::min(standing.queue.ready, standing.queued)),
             {{"state", "delayed"}})
        .add(number(standing.queue.under_way), {{"state", "leased"}});
    exposition.gauge("ablate_queue_trials",
                     "Trials that could be run now, by the priority of their sweep; one of several sweeps "
                     "counts in each.");
    constexpr std::size_t kMostPriorities = 16;  // people choose them
    std::size_t shown = 0, others = 0;
    for (const auto& [priority, trials] : standing.queue.by_priority)
      if (++shown < kMostPriorities)
        exposition.add(number(trials), {{"priority", std::to_string(priority)}});
      else
        others += trials;
    exposition.add(number(others), {{"priority", "lower"}});
    exposition.gauge("ablate_queue_lanes", "Kinds of trials that the same workers can take.")
        .add(number(standing.queue.lanes));
    exposition
        .gauge("ablate_queue_longest_wait_seconds",
               "Of the sweeps that wait, how long the one has got no slot that has waited for longest.")
        .add(standing.longest_wait ? Seconds{*standing.longest_wait}.count() : 0);
    exposition.gauge("ablate_workers", "Connected workers; the other states are of these.")
        .add(number(standing.connected), {{"state", "connected"}})
        .add(number(standing.unhealthy), {{"state", "unhealthy"}})
        .add(number(standing.drained), {{"state", "drained"}})
        .add(number(standing.quarantined), {{"state", "quarantined"}})
        .add(number(standing.stopping), {{"state", "stopping"}});
    exposition.gauge("ablate_slots", "Slots of connected workers.")
        .add(number(standing.busy), {{"state", "busy"}})
        .add(number(standing.free), {{"state", "free"}});
    exposition.gauge("ablate_leases_ahead", "Leases of runs that wait at a busy slot.")
        .add(number(standing.ahead));
    exposition
        .gauge("ablate_scheduler_look_age_seconds", "How old the figures of the queue and of workers are.")
        .add(seconds_of(std::chrono::steady_clock::now() - standing.at));
  }

  static void expose_runs(Exposition& exposition, const Figures& figures) {
    exposition.counter("ablate_leases_granted_total", "Leases given to workers.").add(figures.leases);
    exposition.counter("ablate_leases_expired_total", "Leases that ran out while their worker was silent.")
        .add(figures.expired);
    exposition.counter("ablate_runs_ended_total", "Runs that ended, by how.");
    for (const auto state : {storage::RunState::kCompleted, storage::RunState::kFailed,
                             storage::RunState::kStopped, storage::RunState::kLost})
      exposition.add(figures.ended.at(static_cast<std::size_t>(state)), {{"state", storage::to_text(state)}});
    exposition.counter("ablate_runs_failed_total", "Runs that failed, by whose failure it is.");
    for (const auto failure : values_of<protocol::FailureClass>())
      exposition.add(figures.failed.at(static_cast<std::size_t>(failure)), {{"class", name_of(failure)}});
    exposition.counter("ablate_batches_total", "Batches of runs that came in.").add(figures.batches);
    exposition.counter("ablate_batch_points_total", "Metric points in them.").add(figures.points);
    exposition.counter("ablate_batch_bytes_total", "Their bytes.").add(figures.batch_bytes);
    exposition
        .histogram("ablate_batch_seconds",
                   "Time from the arrival of a batch to its acknowledgement, which follows its commit.")
        .add(figures.batch_seconds);
  }

  void expose_store(Exposition& exposition) const {
    const storage::Writer::Figures& figures = scheduler_.writer().figures();
    exposition.counter("ablate_store_commits_total", "Transactions committed.").add(figures.commits);
    exposition.counter("ablate_store_commits_failed_total", "Transactions that could not be committed.")
        .add(figures.failed);
    exposition.counter("ablate_store_changes_total", "Changes in them: several may share one.")
        .add(figures.jobs);
    exposition.histogram("ablate_store_commit_seconds", "Time of a transaction, its commit included.")
        .add(figures.seconds);
    exposition.histogram("ablate_store_changes_per_commit", "Changes that shared a transaction.")
        .add(figures.jobs_a_commit);
    const storage::Writer::Backlog backlog = scheduler_.writer().backlog();
    exposition.gauge("ablate_store_changes_waiting", "Changes that are not stored yet.")
        .add(number(backlog.jobs));
    exposition.gauge("ablate_store_oldest_change_seconds", "How long the oldest of them has been waiting.")
        .add(seconds_of(backlog.oldest));
    exposition.gauge("ablate_store_writable", "1 unless nothing can be stored.")
        .add(scheduler_.coordinator().trouble().empty() ? 1 : 0);
    exposition.gauge("ablate_store_bytes", "Size of the results file and of its log.");
    for (const auto& [name, file] :
         {std::pair{"file", store_.string()}, std::pair{"log", store_.string() + "-wal"}}) {
      std::error_code absent;
      const auto bytes = fs::file_size(file, absent);
      exposition.add(absent ? 0 : static_cast<double>(bytes), {{"part", name}});
    }
    const DepotService& depot = scheduler_.depot();
    exposition.gauge("ablate_depot_bytes", "Size of the files in the depot, and what they may take.");
    exposition.add(number(depot.depot().used()), {{"kind", "used"}});
    exposition.add(number(depot.depot().options().limit), {{"kind", "limit"}});
    exposition.gauge("ablate_depot_files", "Whole files in the depot.").add(number(depot.depot().files()));
    const Depot::Figures& moved = depot.depot().figures();
    exposition.counter("ablate_depot_bytes_total", "Bytes that came into the depot and left it.");
    exposition.add(moved.received, {{"way", "in"}}).add(moved.sent, {{"way", "out"}});
    exposition.counter("ablate_depot_dropped_total",
                       "Files that the depot dropped: damaged ones, and copies for want of room.");
    exposition.add(moved.damaged, {{"why", "damaged"}}).add(moved.evicted, {{"why", "room"}});
    exposition.gauge("ablate_disk_free_bytes", "Room for this user on the disk of the results file.");
    std::error_code unknown;
    const fs::space_info space = fs::space(fs::absolute(store_).parent_path(), unknown);
    if (!unknown) exposition.add(static_cast<double>(space.available));
  }

  const fs::path store_;
  Scheduler& scheduler_;
  const CallFigures& calls_;
  const access::Porter& porter_;
  const access::ServerCertificate* const certificate_;
  std::atomic<const webhooks::Couriers*> couriers_ = nullptr;
};

/// The dashboard's people, as gRPC knows them.
class Door final : public web::Doorkeeper {
 public:
  explicit Door(AccessControl& access) : access_{access} {}
  Holder recognise(std::string_view token) override {
    const Caller caller = access_.reader_with(token);
    return {.token = caller.token,
            .name = caller.name,
            .role = std::string{name_of(caller.role)},
            .expires = caller.expires};
  }
  std::string why_over(const std::string& token) const override { return access_.why_over(token); }
  void note(const Holder& holder, const std::string& what, const std::string& peer,
            const std::string& outcome) override {
    const bool known = !holder.token.empty();
    access_.note({.token = holder.token, .name = known ? holder.name : "unknown"}, what, peer,
                 known ? grpc::Status::OK : grpc::Status{grpc::StatusCode::UNAUTHENTICATED, outcome});
  }

 private:
  AccessControl& access_;
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
        certificate_{options.tls.given()
                         ? std::make_shared<access::ServerCertificate>(options.tls, clock_.now())
                         : nullptr},
        porter_{{.of_one = options.connections_each}},
        lock_{with_folder(options.scheduler.store, folders_)},
        store_{new_store(options.scheduler.store, files_)},
        scheduler_{options.scheduler, clock_},
        monitor_{options.scheduler.store, scheduler_, calls_, porter_, certificate_.get()} {
    if (const auto address = dashboard_address(options)) {
      web_ = std::make_unique<web::Server>(
          web::ServerOptions{.store = options.scheduler.store,
                             .address = address->host,
                             .port = address->port,
                             .version = ABLATE_VERSION,
                             .log = &scheduler_.feed().log(),
                             .monitor = &monitor_,
                             .certificate = certificate_,
                             .doorkeeper = certificate_ ? &door_ : nullptr,
                             .actions = &actions_,
                             .others = [this] { return scheduler_.other_places(); },
                             .limits = {.event_streams_of_one = options.pages_each}});
      scheduler_.access().set_dashboard(web_->url());
      scheduler_.access().when_one_ends([this] { web_->look_who_is_there(); });
      web_subscription_ = scheduler_.feed().subscribe([this](const std::set<storage::Change>& changes) {
        web_->set_trouble(scheduler_.coordinator().trouble());
        for (const storage::Change& change : changes) web_->publish(change);
      });
    }
    tell_webhooks(options);
    serve();
    grpc::ChannelArguments any_answer;
    any_answer.SetMaxReceiveMessageSize(-1);
    actions_.connect(server_->InProcessChannel(any_answer));
    scheduler_.start_fleet();
    ticker_ = std::jthread{[this](std::stop_token stop) { tick_until(std::move(stop)); }};
    folders_.keep();
    files_.keep();
    lock_.keep();
  }

  ~Impl() {
    webhook_subscription_ = {};
    if (couriers_) couriers_->stop();
    ticker_.request_stop();
    ticker_.join();
    scheduler_.stop_counting();
    scheduler_.coordinator().close_sessions();
    scheduler_.access().when_one_ends({});
    porter_.close();
    actions_.finish();
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
    if (options.tls.given()) access::read_server_pem(options.tls, SystemClock{}.now());
    if (!options.tls.given() && !options.tls.client_authorities.empty())
      throw Error{
          Code::kInvalidArgument,
          "--client-ca without --tls-certificate and --tls-key: clients show certificates over TLS alone"};
    const bool network = options.tls.given() || options.insecure;
    for (const std::string& text : listen)
      parsed.push_back(access::parse_listen_address(
          text, network ? access::Reach::kNetwork : access::Reach::kThisMachine));
    for (const ListenAddress& address : parsed) access::check(address);
    if (const auto dashboard = dashboard_address(options))
      access::check(*dashboard, options.http_port ? "--http-port" : "--http-listen");
    return parsed;
  }

  /// Where the dashboard listens; nothing: there is none.
  static std::optional<ListenAddress> dashboard_address(const ServerOptions& options) {
    if (options.http_port && !options.http_listen.empty())
      throw Error{Code::kInvalidArgument, "--http-port and --http-listen: pass one of them"};
    if (options.http_port) return ListenAddress{.host = "127.0.0.1", .port = *options.http_port};
    if (options.http_listen.empty()) return std::nullopt;
    const ListenAddress address = access::parse_listen_address(options.http_listen, access::Reach::kNetwork);
    if (!address.socket.empty())
      throw Error{Code::kInvalidArgument,
                  fmt::format("--http-listen {}: expected an address and a port", options.http_listen)};
    if (!access::is_loopback(address.host) && !options.tls.given())
      throw Error{
          Code::kInvalidArgument,
          fmt::format("--http-listen {}: beyond this machine the dashboard needs --tls-certificate and "
                      "--tls-key, which 'ablate init-fleet' makes",
                      options.http_listen)};
    return address;
  }

  void serve() {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    grpc::ServerBuilder builder;
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT,
                               0);  // two servers on one port would share its calls silently
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);  // a machine that vanished is noticed
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 10'000);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 256);          // of one connection
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, 15 * 60'000);  // clients connect again
    builder.SetMaxReceiveMessageSize(16 << 20);  // a sweep file has 4 MiB at most, a batch of a run less
    builder.SetResourceQuota(grpc::ResourceQuota{"calls"}.Resize(512 << 20));
    std::vector<int> ports(addresses_.size(), 0);
    for (std::size_t i = 0; i < addresses_.size(); ++i) {
      folders_.add(access::prepare(addresses_[i]));
      if (addresses_[i].socket.empty())
        ports[i] = porter_.listen(addresses_[i], builder, credentials_for(addresses_[i]));
      else  // its folder is its owner's alone
        builder.AddListeningPort(addresses_[i].text(), credentials_for(addresses_[i]), &ports[i]);
    }
    scheduler_.register_services(builder);
    std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> interceptors;
    interceptors.push_back(std::make_unique<CallNotes>(monitor_, calls_));
    interceptors.push_back(scheduler_.access().interceptors());
    builder.experimental().SetInterceptorCreators(std::move(interceptors));
    server_ = builder.BuildAndStart();
    for (std::size_t i = 0; i < addresses_.size(); ++i) {
      if (!server_ || ports[i] == 0)
        throw Error{Code::kUnavailable,
                    fmt::format("cannot listen on {}: in use or not permitted", addresses_[i].text())};
      if (addresses_[i].socket.empty()) addresses_[i].port = static_cast<std::uint16_t>(ports[i]);
    }
    porter_.open();
  }

  /// The owner's socket asks for nothing: its folder is his alone.
  std::shared_ptr<grpc::ServerCredentials> credentials_for(const ListenAddress& address) {
    if (!certificate_ || !address.socket.empty()) return grpc::InsecureServerCredentials();
    auto credentials = certificate_->credentials();
    credentials->SetAuthMetadataProcessor(scheduler_.access().processor());
    return credentials;
  }

  /// The dashboard's address for links; empty where it listens everywhere: by which name others reach it is
  /// not known here.
  std::string linked_dashboard(const ServerOptions& options) const {
    const auto address = dashboard_address(options);
    const bool everywhere = address && (address->host == "0.0.0.0" || address->host == "::");
    return everywhere ? std::string{} : dashboard();
  }

  void tell_webhooks(const ServerOptions& options) {
    if (options.webhooks.empty()) return;
    couriers_ =
        std::make_unique<webhooks::Couriers>(options.webhooks,
                                             webhooks::CourierOptions{.store = options.scheduler.store,
                                                                      .dashboard = linked_dashboard(options),
                                                                      .between = options.webhooks_between},
                                             scheduler_.tables());
    monitor_.watch(couriers_.get());
    webhook_subscription_ = scheduler_.feed().subscribe([this](const std::set<storage::Change>& changes) {
      if (!changes.empty()) couriers_->wake();
    });
  }

  void tick_until(std::stop_token stop) {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock{mutex};
    while (!stop.stop_requested()) {
      scheduler_.coordinator().tick();
      scheduler_.access().tick();
      scheduler_.depot().tick();
      if (certificate_) certificate_->look_again(clock_.now());
      wake.wait_for(lock, stop, kTick, [] { return false; });
    }
  }

  SystemClock clock_;
  std::vector<ListenAddress> addresses_;
  const std::shared_ptr<access::ServerCertificate> certificate_;  // none: plain text
  access::Porter porter_;
  // What is refused goes in the opposite order: the store's files while the lock is held, so that they are
  // ours.
  MadePaths folders_;
  StoreLock lock_;
  MadePaths files_;
  fs::path store_;
  Scheduler scheduler_;
  CallFigures calls_;
  SchedulerMonitor monitor_;
  Door door_{scheduler_.access()};
  DashboardActions actions_{scheduler_.access()};
  std::unique_ptr<webhooks::Couriers> couriers_;  // outlives the dashboard, which shows its figures
  std::unique_ptr<web::Server> web_;
  ChangeFeed::Subscription web_subscription_;
  ChangeFeed::Subscription webhook_subscription_;
  std::unique_ptr<grpc::Server> server_;
  std::jthread ticker_;
};

SchedulerServer::SchedulerServer(const ServerOptions& options) : impl_{std::make_unique<Impl>(options)} {}
SchedulerServer::~SchedulerServer() = default;
std::vector<std::string> SchedulerServer::addresses() const { return impl_->addresses(); }
std::string SchedulerServer::dashboard() const { return impl_->dashboard(); }

}  // namespace abl::scheduler
