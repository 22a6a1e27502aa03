// SPDX-License-Identifier: Apache-2.0
#include "launchers/kubernetes.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/child_process.h"
#include "base/error.h"
#include "base/file.h"
#include "base/printable.h"
#include "launchers/pilot_id.h"

namespace abl::launchers {
namespace {

using nlohmann::json;
using std::chrono::seconds;
namespace fs = std::filesystem;

constexpr const char *kBatch = "/apis/batch/v1", *kCore = "/api/v1";
constexpr const char *kStore = "ablate-store", *kPilot = "ablate-pilot", *kQueue = "ablate-queue";
constexpr const char* kPassFolder = "/var/run/ablate";  // in the pod
constexpr int kTries = 3;
constexpr seconds kEndedAreKept{3600};
/// Constant: whatever differs is an argument, which no shell reads. The secret's file is its group's, the
/// worker wants one that is its own.
constexpr const char* kPodScript =
    "umask 077\n"
    "home=$1 pass=$2\n"
    "shift 2\n"
    "mkdir -p \"$home\" || exit 1\n"
    "if [ -n \"$pass\" ]; then cp \"$pass\" \"$home/join.token\" || exit 1; fi\n"
    "exec \"$@\"\n";

std::string name_of_job(const KubernetesOptions& options, const std::string& pilot) {
  return fmt::format("ablate-{}-{}", options.store_id, pilot);
}

json labels_of(const KubernetesOptions& options, const std::string& pilot) {
  return {{kStore, options.store_id}, {kPilot, pilot}};
}

/// A word of curl's configuration.
std::string config_word(std::string_view text) {
  std::string word = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') word += '\\';
    if (letter == '\n' || letter == '\r') continue;
    word += letter;
  }
  return word + '"';
}

std::string percent(std::string_view text) {
  std::string escaped;
  for (const unsigned char letter : text)
    escaped += std::isalnum(letter) || letter == '-' || letter == '_' || letter == '.'
                   ? std::string(1, static_cast<char>(letter))
                   : fmt::format("%{:02X}", letter);
  return escaped;
}

/// Kubernetes' "128Gi" of our "128G".
std::string binary(const std::string& memory) {
  return memory.empty() || std::isdigit(static_cast<unsigned char>(memory.back())) ? memory + "Mi"
                                                                                   : memory + "i";
}

/// What the API server says is wrong.
std::string words_of(const std::string& body) {
  const json answer = json::parse(body, nullptr, /*allow_exceptions=*/false);
  const bool says = answer.is_object() && answer.contains("message") && answer["message"].is_string();
  return printable(says ? answer["message"].get<std::string>().substr(0, 500) : body.substr(0, 200));
}

/// Which of its reasons an API server has: "AlreadyExists", "Conflict"; empty: it says none.
std::string reason_of(const std::string& body) {
  const json answer = json::parse(body, nullptr, /*allow_exceptions=*/false);
  const bool says = answer.is_object() && answer.contains("reason") && answer["reason"].is_string();
  return says ? answer["reason"].get<std::string>() : std::string{};
}

json parsed(const std::string& body) {
  json answer = json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object() || !answer.contains("items") || !answer["items"].is_array())
    throw Error{Code::kUnavailable,
                fmt::format("the API server sent no list: '{}'", printable(body.substr(0, 200)))};
  return answer;
}

/// "2026-11-24T01:02:03Z".
std::optional<Time> time_of(const json& text) {
  if (!text.is_string()) return std::nullopt;
  tm parts{};
  const char* end = ::strptime(text.get_ref<const std::string&>().c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (!end || *end != 'Z') return std::nullopt;
  return Time{seconds{::timegm(&parts)}};
}

/// A text somewhere in a document, or empty.
std::string text_at(const json& document, const char* pointer) {
  const json::json_pointer place{pointer};
  if (!document.contains(place) || !document[place].is_string()) return {};
  return document[place].get<std::string>();
}

const json& list_at(const json& document, const char* pointer) {
  static const json kNone = json::array();
  const json::json_pointer place{pointer};
  return document.contains(place) && document[place].is_array() ? document[place] : kNone;
}

/// A condition that holds, or nullptr.
const json* condition(const json& document, const char* type) {
  for (const json& each : list_at(document, "/status/conditions"))
    if (text_at(each, "/type") == type && text_at(each, "/status") == "True") return &each;
  return nullptr;
}

/// Why a pod does not run yet.
std::string why_pending(const json& pod) {
  for (const json& container : list_at(pod, "/status/containerStatuses"))
    if (std::string why = text_at(container, "/state/waiting/reason"); !why.empty()) return why;
  for (const json& each : list_at(pod, "/status/conditions"))
    if (text_at(each, "/status") == "False")
      if (std::string why = text_at(each, "/message"); !why.empty()) return why;
  return {};
}

/// Node and priority, not the program, ended it.
bool was_taken_away(const json& pod) {
  if (condition(pod, "DisruptionTarget")) return true;
  static constexpr std::array<std::string_view, 7> kReasons{
      "Evicted", "Preempting", "NodeLost", "Shutdown", "Terminated", "NodeShutdown", "DeadlineExceeded"};
  return std::ranges::find(kReasons, text_at(pod, "/status/reason")) != kReasons.end();
}

/// What a pod says of its pilot.
void look_at(const json& pod, Time now, Pilot& pilot) {
  const std::string phase = text_at(pod, "/status/phase");
  pilot.state = phase == "Pending" ? PilotState::kWaiting : PilotState::kRunning;
  if (pilot.state == PilotState::kWaiting) pilot.said = printable(why_pending(pod));
  if (pilot.state == PilotState::kRunning) pilot.machine = printable(text_at(pod, "/spec/nodeName"));
  if (pod.contains("status") && pod["status"].is_object())
    if (const auto start = time_of(pod["status"].value("startTime", json{})))
      pilot.ran = std::max(seconds{0}, std::chrono::floor<seconds>(now - *start));
}

/// How a job has ended, if it has.
void look_at_end(const json& job, const json* pod, Pilot& pilot) {
  const json* failed = condition(job, "Failed");
  if (!failed && !condition(job, "Complete")) return;
  pilot.state = PilotState::kEnded;
  pilot.machine.clear();
  pilot.said = "Complete";
  if (!failed) return;
  pilot.said = printable(text_at(*failed, "/reason"));
  // without its pod nobody knows: its node is gone, most often
  pilot.failed = pilot.said != "DeadlineExceeded" && pod && !was_taken_away(*pod);
  if (!pod) return;
  if (const std::string reason = text_at(*pod, "/status/reason"); !reason.empty())
    pilot.said = printable(reason);
  for (const json& container : list_at(*pod, "/status/containerStatuses"))
    if (const json::json_pointer code{"/state/terminated/exitCode"}; container.contains(code))
      pilot.said += fmt::format(", exit code {}", container[code].dump());
}

}  // namespace

KubernetesOptions KubernetesOptions::of(const FleetConfig& fleet, std::string store_id) {
  KubernetesOptions options{.store_id = std::move(store_id), .scheduler = fleet.scheduler};
  if (!fleet.kubernetes.empty()) {
    options.server = fleet.kubernetes;
    options.account = fleet.service_account;
    return options;
  }
  const char* host = std::getenv("KUBERNETES_SERVICE_HOST");
  const char* port = std::getenv("KUBERNETES_SERVICE_PORT");
  if (!host || !port)
    throw Error{Code::kFailedPrecondition,
                "fleet file: launcher kubernetes: this program runs in no pod; expected kubernetes: {server: "
                "https://HOST:PORT, service_account: FOLDER}"};
  const bool is_v6 = std::string_view{host}.find(':') != std::string_view::npos;
  options.server =
      is_v6 ? fmt::format("https://[{}]:{}", host, port) : fmt::format("https://{}:{}", host, port);
  return options;
}

std::string job_document(const QueueConfig& queue, const KubernetesOptions& options, const std::string& pilot,
                         const std::optional<Pass>& pass) {
  const std::string worker = Pilot{.id = pilot, .queue = queue.name}.worker();
  const std::string home = queue.home + "/" + worker, folder = kPassFolder;
  json command{"/bin/sh", "-c", kPodScript, "sh", home, pass ? folder + "/token" : ""};
  const auto add = [&](std::initializer_list<std::string> words) {
    for (const std::string& word : words) command.push_back(word);
  };
  add({queue.program, "--scheduler", options.scheduler, "--name", worker, "--home", home, "--runs-root",
       queue.home + "/runs", "--slots", std::to_string(queue.slots), "--time-limit",
       fmt::format("{}s", queue.time_limit.count())});
  const auto add_all = [&](const char* flag, const std::map<std::string, std::string>& named) {
    for (const auto& [name, value] : named) add({flag, fmt::format("{}={}", name, value)});
  };
  add_all("--label", queue.labels);
  add({"--label", "queue=" + queue.name});
  add_all("--data", queue.data);
  add_all("--weights", queue.weights);
  if (pass)
    add({"--ca", pass->authorities.empty() ? std::string{kSystem} : folder + "/ca.crt", "--join-token-file",
         home + "/join.token"});
  if (queue.allow_commands) add({"--allow-commands"});
  for (const std::string& word : queue.worker_arguments) add({word});

  json resources = json::object(), mounts = json::array(), volumes = json::array();
  if (queue.cpus > 0) resources["cpu"] = std::to_string(queue.cpus);
  if (!queue.memory.empty()) resources["memory"] = binary(queue.memory);
  if (queue.gpus > 0) resources["nvidia.com/gpu"] = std::to_string(queue.gpus);
  for (const auto& [claim, path] : queue.volumes) {
    const std::string volume = fmt::format("claim-{}", volumes.size());
    volumes.push_back({{"name", volume}, {"persistentVolumeClaim", {{"claimName", claim}}}});
    mounts.push_back({{"name", volume}, {"mountPath", path}});
  }
  if (pass) {
    volumes.push_back(
        {{"name", "pass"},
         {"secret",
          {{"secretName", name_of_job(options, pilot)}, {"defaultMode", 0440}, {"optional", false}}}});
    mounts.push_back({{"name", "pass"}, {"mountPath", folder}, {"readOnly", true}});
  }
  json tolerations = json::array();
  for (const std::string& key : queue.tolerations)
    tolerations.push_back({{"key", key}, {"operator", "Exists"}});
  json node_selector = json::object();
  for (const auto& [label, value] : queue.node_selector) node_selector[label] = value;
  const json container{
      {"name", "worker"},
      {"image", queue.image},
      {"command", command},
      {"resources", {{"requests", resources}, {"limits", resources}}},
      {"volumeMounts", mounts},
      {"securityContext",
       {{"allowPrivilegeEscalation", false}, {"capabilities", {{"drop", json::array({"ALL"})}}}}}};
  const json pod{{"restartPolicy", "Never"},
                 {"automountServiceAccountToken", false},
                 // the worker ends before; its image may take a while to come
                 {"activeDeadlineSeconds", (queue.time_limit + ends_early(queue.time_limit)).count()},
                 {"terminationGracePeriodSeconds", ends_early(queue.time_limit).count()},
                 {"nodeSelector", node_selector},
                 {"tolerations", tolerations},
                 {"securityContext",
                  {{"runAsNonRoot", true},
                   {"runAsUser", queue.run_as_user},
                   {"runAsGroup", queue.run_as_user},
                   {"fsGroup", queue.run_as_user},
                   {"seccompProfile", {{"type", "RuntimeDefault"}}}}},
                 {"containers", json::array({container})},
                 {"volumes", volumes}};
  const json annotations{{kQueue, queue.name}};
  const json job{{"apiVersion", "batch/v1"},
                 {"kind", "Job"},
                 {"metadata",
                  {{"name", name_of_job(options, pilot)},
                   {"labels", labels_of(options, pilot)},
                   {"annotations", annotations}}},
                 {"spec",
                  {{"backoffLimit", 0},
                   {"ttlSecondsAfterFinished", kEndedAreKept.count()},
                   {"template",
                    {{"metadata", {{"labels", labels_of(options, pilot)}, {"annotations", annotations}}},
                     {"spec", pod}}}}}};
  return job.dump();
}

std::string secret_document(const KubernetesOptions& options, const std::string& pilot, const Pass& pass) {
  const json secret{
      {"apiVersion", "v1"},
      {"kind", "Secret"},
      {"metadata", {{"name", name_of_job(options, pilot)}, {"labels", labels_of(options, pilot)}}},
      {"type", "Opaque"},
      {"stringData", {{"token", pass.token + "\n"}, {"ca.crt", pass.authorities}}}};
  return secret.dump();
}

std::vector<Pilot> parse_jobs(const std::vector<std::string>& jobs, const std::vector<std::string>& pods,
                              Time now) {
  const auto named = [](const json& object) -> std::optional<Pilot> {
    Pilot pilot{.id = text_at(object, "/metadata/labels/ablate-pilot"),
                .queue = text_at(object, "/metadata/annotations/ablate-queue")};
    if (!is_pilot_id(pilot.id) || pilot.queue.empty()) return std::nullopt;
    return pilot;
  };
  std::map<std::string, json> pod_of;
  for (const std::string& page : pods) {
    const json list = parsed(page);
    for (const json& pod : list["items"])
      if (const auto pilot = named(pod)) pod_of[pilot->id] = pod;
  }
  std::map<std::string, Pilot> pilots;
  for (const auto& [id, pod] : pod_of) {  // a job that is deleted leaves its pod the time to end
    const std::string phase = text_at(pod, "/status/phase");
    if (phase == "Succeeded" || phase == "Failed") continue;
    look_at(pod, now, pilots.emplace(id, *named(pod)).first->second);
  }
  for (const std::string& page : jobs) {
    const json list = parsed(page);
    for (const json& job : list["items"]) {
      const auto pilot = named(job);
      if (!pilot) continue;
      Pilot& known = pilots.emplace(pilot->id, *pilot).first->second;
      const auto pod = pod_of.find(pilot->id);
      look_at_end(job, pod == pod_of.end() ? nullptr : &pod->second, known);
    }
  }
  std::vector<Pilot> all;
  for (auto& [id, pilot] : pilots) all.push_back(std::move(pilot));
  return all;
}

std::string KubernetesLauncher::in_namespace(const char* group, const std::string& rest) const {
  std::string space = read_file(options_.account / "namespace");
  std::erase_if(space, [](unsigned char letter) { return std::isspace(letter); });
  return fmt::format("{}/namespaces/{}/{}", group, percent(space), rest);
}

/// Throws: Error{kUnavailable} where nobody answers.
KubernetesLauncher::Answer KubernetesLauncher::ask(const char* method, const std::string& path,
                                                   const std::string& body,
                                                   const std::stop_token& stop) const {
  Answer answer;
  for (int attempt = 0; attempt < 2; ++attempt) {  // 401: the token was exchanged a moment ago
    std::string token;
    try {
      token = read_file(options_.account / "token");
    } catch (const Error& error) {
      throw Error{Code::kUnavailable, error.what()};
    }
    std::string config =
        fmt::format("url = {}\nrequest = {}\ncacert = {}\nheader = {}\nmax-time = {}\n",
                    config_word(options_.server + path), config_word(method),
                    config_word((options_.account / "ca.crt").string()),
                    config_word("Authorization: Bearer " + token),
                    std::max<std::int64_t>(1, options_.time_limit.count() / 1000)) +
        "header = \"Accept: application/json\"\nsilent\nshow-error\nproto = \"=https\"\nnoproxy = \"*\"\n"
        "max-filesize = 67108864\nwrite-out = \"\\n%{http_code}\"\n";
    if (!body.empty())
      config += "header = \"Content-Type: application/json\"\ndata-raw = " + config_word(body) + "\n";
    std::string text;
    try {
      text = run_program({"curl", "-q", "--config", "-"}, config, options_.time_limit + seconds{2}, stop);
    } catch (const Error& error) {
      throw Error{Code::kUnavailable, fmt::format("the API server at {}: {}", options_.server, error.what())};
    }
    const auto end = text.rfind('\n');
    answer = {.status = end == std::string::npos ? 0 : std::atoi(text.c_str() + end + 1),
              .body = text.substr(0, end)};
    if (answer.status != 401) return answer;
  }
  return answer;
}

/// All pages. One that comes too late for its place in the list (410) begins anew.
std::vector<std::string> KubernetesLauncher::list_all(const std::string& path,
                                                      const std::stop_token& stop) const {
  std::vector<std::string> pages;
  std::string next;
  int begun = 1;
  while (true) {
    const Answer answer =
        ask("GET",
            fmt::format("{}?labelSelector={}%3D{}&limit=250{}", path, kStore, percent(options_.store_id),
                        next.empty() ? "" : "&continue=" + next),
            "", stop);
    if (answer.status == 410 && begun < kTries) {
      ++begun;
      pages.clear();
      next.clear();
      continue;
    }
    if (answer.status != 200)
      throw Error{Code::kUnavailable, fmt::format("the API server at {} answers {}: {}", options_.server,
                                                  answer.status, words_of(answer.body))};
    next = percent(text_at(parsed(answer.body), "/metadata/continue"));
    pages.push_back(answer.body);
    if (next.empty()) return pages;
  }
}

std::vector<Pilot> KubernetesLauncher::list(const std::stop_token& stop) {
  try {
    const auto pods = list_all(in_namespace(kCore, "pods"), stop);
    const auto jobs = list_all(in_namespace(kBatch, "jobs"), stop);
    std::vector<Pilot> pilots = parse_jobs(jobs, pods, SystemClock{}.now());
    std::map<std::string, Pilot> live;
    for (const Pilot& pilot : pilots) {
      if (pilot.state != PilotState::kEnded) live.emplace(pilot.id, pilot);
      live_.erase(pilot.id);
    }
    for (auto& [id, pilot] : std::exchange(live_, std::move(live))) {
      pilot.state = PilotState::kEnded;
      pilot.said = "its job was deleted";
      pilot.machine.clear();
      pilots.push_back(std::move(pilot));
    }
    return pilots;
  } catch (const Error& error) {  // whatever it is: nothing was said of the pilots
    throw Error{Code::kUnavailable, error.what()};
  }
}

/// Creates an object. One of its name is the one that an earlier try has created: the name has the pilot's
/// id.
void KubernetesLauncher::make(const char* group, const std::string& kind, const std::string& body,
                              const std::stop_token& stop) const {
  std::string trouble;
  for (int attempt = 0; attempt < kTries && !stop.stop_requested(); ++attempt) {
    Answer answer;
    try {
      answer = ask("POST", in_namespace(group, kind), body, stop);
    } catch (const Error& error) {
      trouble = error.what();
      continue;
    }
    if (answer.status == 200 || answer.status == 201 || answer.status == 202) return;
    if (answer.status == 409 && reason_of(answer.body) == "AlreadyExists") return;
    trouble = fmt::format("the API server answers {} to a new object of {}: {}", answer.status, kind,
                          words_of(answer.body));
    if (answer.status >= 400 && answer.status < 500 && answer.status != 401 && answer.status != 409 &&
        answer.status != 429)
      throw Error{Code::kInvalidArgument, trouble};
  }
  throw Error{Code::kUnavailable, trouble};
}

void KubernetesLauncher::unmake(const char* group, const std::string& object,
                                const std::stop_token& stop) const {
  const Answer answer =
      ask("DELETE", in_namespace(group, object), R"({"propagationPolicy":"Background"})", stop);
  if (answer.status != 404 && (answer.status < 200 || answer.status > 299))
    throw Error{Code::kUnavailable, fmt::format("the API server answers {} to the deletion of {}: {}",
                                                answer.status, object, words_of(answer.body))};
}

std::string KubernetesLauncher::submit(const QueueConfig& queue, const std::optional<Pass>& pass,
                                       const std::stop_token& stop) {
  const std::string pilot = pass ? pass->id : new_pilot_id();
  if (pass) make(kCore, "secrets", secret_document(options_, pilot, *pass), stop);
  make(kBatch, "jobs", job_document(queue, options_, pilot, pass), stop);
  return pilot;
}

void KubernetesLauncher::cancel(const std::vector<Pilot>& pilots, const std::stop_token& stop) {
  for (const Pilot& pilot : pilots) unmake(kBatch, "jobs/" + name_of_job(options_, pilot.id), stop);
}

/// Folders of workers lie on volumes that this machine need not have: they stay.
void KubernetesLauncher::remove(const QueueConfig&, const Leftovers& leftovers, const std::stop_token& stop) {
  std::optional<Error> first;
  for (const std::string& pass : leftovers.passes) try {
      unmake(kCore, "secrets/" + name_of_job(options_, pass), stop);
    } catch (const Error& error) {
      if (!first) first = error;
    }
  if (first) throw Error{*first};
}

}  // namespace abl::launchers
