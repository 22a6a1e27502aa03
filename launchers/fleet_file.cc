// SPDX-License-Identifier: Apache-2.0
#include "launchers/fleet_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <set>
#include <utility>

#include "base/duration.h"
#include "base/enum_names.h"
#include "base/nearest_name.h"
#include "sweeps/yaml_reader.h"

namespace abl::launchers {
namespace {

using std::chrono::seconds;
using sweeps::dotted;
using sweeps::Node;

constexpr int kMostQueues = 64, kMostWorkers = 10'000, kMostBacklog = 1'000, kMostSlots = 1'024;
constexpr std::size_t kMostHosts = 256;
constexpr seconds kShortestLimit{60}, kLongestLimit{365 * 24 * 3600};

/// Flags of sbatch that the launcher sets itself, and where to say the same.
struct OwnFlag {
  std::string_view flag, instead;
};
constexpr OwnFlag kOwnFlags[] = {
    {"--account", "account"},
    {"--array", ""},
    {"--chdir", ""},
    {"--constraint", "constraint"},
    {"--cpus-per-task", "cpus"},
    {"--export", ""},
    {"--gres", "gres"},
    {"--job-name", ""},
    {"--mem", "memory"},
    {"--nodes", ""},
    {"--ntasks", ""},
    {"--output", ""},
    {"--parsable", ""},
    {"--error", ""},
    {"--partition", "partition"},
    {"--qos", "qos"},
    {"--signal", ""},
    {"--time", "time_limit"},
    {"--wrap", ""},
    {"--wait", ""},
    {"--test-only", ""},
};

class FleetReader {
 public:
  /// `folder`: of the fleet file.
  FleetReader(sweeps::Problems& problems, std::filesystem::path folder)
      : problems_{problems}, yaml_{problems}, folder_{std::move(folder)} {}

  FleetConfig read(const Node& root) {
    FleetConfig fleet;
    if (!yaml_.is_mapping(root, "")) return fleet;
    yaml_.allow_only(root, "", {"scheduler", "ca", "kubernetes", "queues"});
    if (const Node* scheduler =
            yaml_.required(root, "", "scheduler", "where workers find the scheduler, head:7071"))
      fleet.scheduler = plain_text(*scheduler, "scheduler");
    if (const Node* ca = root.find("ca"); ca && plain_text(*ca, "ca") != kSystem)
      fleet.ca = path(*ca, "ca");
    else if (ca)
      fleet.ca = kSystem;
    if (const Node* kubernetes = root.find("kubernetes")) read_kubernetes(*kubernetes, fleet);
    const Node* queues = yaml_.required(root, "", "queues", "a mapping of names to queues");
    if (!queues || !yaml_.is_mapping(*queues, "queues")) return fleet;
    if (queues->entries.empty()) problems_.add(queues->place, "queues", "expected at least one queue");
    if (queues->entries.size() > kMostQueues)
      problems_.add(queues->place, "queues", fmt::format("expected at most {} queues", kMostQueues));
    for (const Node::Entry& entry : queues->entries) fleet.queues.push_back(queue(entry));
    return fleet;
  }

 private:
  /// Of a scheduler that runs in no pod.
  void read_kubernetes(const Node& node, FleetConfig& fleet) {
    if (!yaml_.is_mapping(node, "kubernetes")) return;
    yaml_.allow_only(node, "kubernetes", {"server", "service_account"});
    if (const Node* server =
            yaml_.required(node, "kubernetes", "server", "https://HOST:PORT of the API server"))
      fleet.kubernetes = plain_text(*server, "kubernetes.server");
    if (!fleet.kubernetes.empty() && !fleet.kubernetes.starts_with("https://"))
      problems_.add(node.find("server")->place, "kubernetes.server",
                    fmt::format("expected https://HOST:PORT; got '{}'", fleet.kubernetes));
    if (const Node* account = yaml_.required(node, "kubernetes", "service_account",
                                             "a folder with token, ca.crt and namespace"))
      fleet.service_account = path(*account, "kubernetes.service_account");
  }

  QueueConfig queue(const Node::Entry& entry) {
    QueueConfig queue{.name = entry.key};
    const std::string field = dotted("queues", entry.key);
    const bool fits =
        !entry.key.empty() && entry.key.size() <= 40 && std::ranges::all_of(entry.key, [](char letter) {
          return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '-' ||
                 letter == '_';
        });
    if (!fits)  // it stands in names of jobs and folders, and in lists that commas part
      problems_.add(entry.place, field, "invalid name; expected at most 40 of a-z, 0-9, '-' and '_'");
    const Node& node = entry.value;
    if (!yaml_.is_mapping(node, field)) return queue;
    yaml_.allow_only(node, field, {"launcher",       "workers",      "backlog",     "time_limit",
                                   "start_deadline", "idle_timeout", "cool_down",   "min_utilisation",
                                   "max_gpu_hours",  "gpus",         "cpus",        "memory",
                                   "slots",          "labels",       "data",        "weights",
                                   "allow_commands", "program",      "home",        "worker_arguments",
                                   "partition",      "account",      "qos",         "gres",
                                   "constraint",     "arguments",    "image",       "volumes",
                                   "node_selector",  "tolerations",  "run_as_user", "hosts",
                                   "bundle",         "ssh_config"});
    const auto at = [&](const char* key) { return dotted(field, key); };
    bool known = false;  // without a launcher nobody can say which keys are missing
    if (const Node* kind = yaml_.required(node, field, "launcher", any_of(names_of<LauncherKind>())))
      if (const auto name = yaml_.choice(*kind, at("launcher"), names_of<LauncherKind>())) {
        queue.kind = value_named<LauncherKind>(*name).value();
        known = true;
      }
    if (known) expect_keys_of(queue.kind, node, field);
    const bool by_ssh = known && queue.kind == LauncherKind::kSsh;
    const auto needed = [&](const char* key, const std::string& expected) {
      return known && !by_ssh ? yaml_.required(node, field, key, expected) : node.find(key);
    };
    if (const Node* workers = needed("workers", "{min: 0, max: 8}")) range(*workers, at("workers"), queue);
    number(node, field, "backlog", 1, kMostBacklog, queue.backlog);
    if (const Node* limit = needed("time_limit", "the time limit of a worker, such as 8h"))
      time(*limit, at("time_limit"), kShortestLimit, kLongestLimit, queue.time_limit);
    if (const Node* start = node.find("start_deadline"))
      time(*start, at("start_deadline"), kShortestLimit, kLongestLimit, queue.start_deadline);
    if (const Node* idle = node.find("idle_timeout"))
      time(*idle, at("idle_timeout"), seconds{1}, kLongestLimit, queue.idle_timeout);
    if (const Node* cool = node.find("cool_down"))
      time(*cool, at("cool_down"), seconds{0}, kLongestLimit, queue.cool_down);
    if (const Node* part = node.find("min_utilisation"))
      queue.min_utilisation = real(*part, at("min_utilisation"), 0, 1, "a number, 0 to 1").value_or(0.5);
    number(node, field, "gpus", 0, kMostSlots, queue.gpus);
    number(node, field, "cpus", 1, 100'000, queue.cpus);
    if (const Node* memory = node.find("memory")) queue.memory = memory_of(*memory, at("memory"));
    queue.slots = queue.gpus > 0 ? queue.gpus : std::max(1, queue.cpus / 2);
    number(node, field, "slots", 1, kMostSlots, queue.slots);
    if (const Node* slots = node.find("slots"); slots && queue.gpus > 0 && queue.slots != queue.gpus)
      problems_.add(slots->place, at("slots"),
                    fmt::format("expected {}: a worker with GPUs has one slot for each", queue.gpus));
    if (const Node* cap = node.find("max_gpu_hours")) {
      queue.max_gpu_hours = real(*cap, at("max_gpu_hours"), 0, 1e9, "a number of hours");
      if (queue.gpus == 0)
        problems_.add(cap->place, at("max_gpu_hours"),
                      "the queue's workers have no GPU; expected gpus: 1 or more");
      if (!node.find("time_limit"))
        problems_.add(cap->place, at("max_gpu_hours"),
                      "expected time_limit as well: a worker without one may take any number of hours");
    }
    names(node, field, "labels", queue.labels, false);
    for (const char* own : {"host", "name"})
      if (queue.labels.contains(own))
        problems_.add(node.find("labels")->entry(own)->place, dotted(at("labels"), own),
                      "every worker has this label by itself; expected another");
    names(node, field, "data", queue.data, true);
    names(node, field, "weights", queue.weights, true);
    if (const Node* allow = node.find("allow_commands"))
      queue.allow_commands = yaml_.boolean(*allow, at("allow_commands")).value_or(false);
    if (by_ssh) {
      read_ssh(node, field, queue);
    } else if (known) {  // by ssh a home may be relative
      if (const Node* program = needed("program", "the path of ablate-worker on the queue's machines"))
        queue.program = path(*program, at("program"));
      if (const Node* home = needed("home", "a folder for the workers on the queue's machines"))
        queue.home = path(*home, at("home"));
    }
    if (known && queue.kind == LauncherKind::kKubernetes)
      if (const Node* image = yaml_.required(node, field, "image", "the container image with ablate-worker"))
        queue.image = plain_text(*image, at("image"));
    names(node, field, "volumes", queue.volumes, true);
    names(node, field, "node_selector", queue.node_selector, false);
    words(node, field, "tolerations", queue.tolerations, [](const std::string&) { return std::string{}; });
    number(node, field, "run_as_user", 1, 2'000'000'000, queue.run_as_user);
    for (const auto& [key, value] :
         {std::pair{"partition", &queue.partition}, std::pair{"account", &queue.account},
          std::pair{"qos", &queue.qos}, std::pair{"gres", &queue.gres},
          std::pair{"constraint", &queue.constraint}})
      if (const Node* given = node.find(key)) *value = plain_text(*given, at(key));
    words(node, field, "worker_arguments", queue.worker_arguments,
          [](const std::string&) { return std::string{}; });
    words(node, field, "arguments", queue.arguments, [](const std::string& word) -> std::string {
      if (!word.starts_with("--") || word.size() < 4)
        return "expected a long flag, such as --exclusive or --nice=100";
      const std::string_view flag = std::string_view{word}.substr(0, word.find('='));
      for (const OwnFlag& own : kOwnFlags)
        if (own.flag == flag)
          return own.instead.empty() ? std::string{"the launcher sets this flag itself"}
                                     : fmt::format("expected as '{}:' of the queue", own.instead);
      return {};
    });
    return queue;
  }

  void read_ssh(const Node& node, const std::string& field, QueueConfig& queue) {
    const auto at = [&](const char* key) { return dotted(field, key); };
    const Node *program = node.find("program"), *bundle = node.find("bundle");
    if (program) queue.program = path(*program, at("program"));
    if (bundle) queue.bundle = file_here(*bundle, at("bundle"));
    if ((program != nullptr) == (bundle != nullptr))
      problems_.add(
          node.place, field,
          "expected either bundle, an archive of 'ablate bundle' that is copied to the machines, or "
          "program, the path of ablate-worker on them");
    if (const Node* config = node.find("ssh_config")) queue.ssh_config = file_here(*config, at("ssh_config"));
    queue.home = "ablate";
    if (const Node* home = node.find("home")) {
      queue.home = plain_text(*home, at("home"));
      const bool leads_out = std::ranges::any_of(std::filesystem::path{queue.home},
                                                 [](const auto& part) { return part == ".."; });
      if (queue.home.empty() || queue.home.front() == '~' || queue.home.front() == '-' || leads_out)
        problems_.add(home->place, at("home"),
                      fmt::format("expected a folder, absolute or below the home of who logs in, without '~' "
                                  "and '..'; got '{}'",
                                  queue.home));
    }
    if (const Node* hosts =
            yaml_.required(node, field, "hosts", "a list of machines, [w1, {host: w2, slots: 4}]"))
      read_hosts(*hosts, at("hosts"), queue);
    const auto machines = static_cast<int>(queue.hosts.size());
    if (machines == 0) return;
    if (!node.find("workers")) queue.max_workers = machines;
    if (queue.max_workers > machines)
      problems_.add(
          node.find("workers")->place, at("workers"),
          fmt::format("expected at most {}, one for each of hosts; got {}", machines, queue.max_workers));
    if (!node.find("backlog")) queue.backlog = machines;
  }

  void read_hosts(const Node& node, const std::string& field, QueueConfig& queue) {
    if (!yaml_.is_sequence(node, field)) return;
    if (node.items.empty() || node.items.size() > kMostHosts)
      problems_.add(node.place, field, fmt::format("expected 1 to {} machines", kMostHosts));
    std::set<std::string> names;
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      const Node& item = node.items[i];
      const std::string at = dotted(field, std::to_string(i + 1));
      SshHost host{.name = {}, .slots = queue.slots, .data = queue.data, .weights = queue.weights};
      if (item.kind == Node::Kind::kScalar) {
        host.name = plain_text(item, at);
      } else if (yaml_.is_mapping(item, at)) {
        yaml_.allow_only(item, at, {"host", "slots", "data", "weights"});
        if (const Node* name = yaml_.required(item, at, "host", "the machine's name, as ssh knows it"))
          host.name = plain_text(*name, dotted(at, "host"));
        number(item, at, "slots", 1, kMostSlots, host.slots);
        if (const Node* slots = item.find("slots"); slots && queue.gpus > 0 && host.slots != queue.gpus)
          problems_.add(slots->place, dotted(at, "slots"),
                        fmt::format("expected {}: a machine with another number of GPUs is of another queue",
                                    queue.gpus));
        read_places(item, at, "data", queue.data, host.data);
        read_places(item, at, "weights", queue.weights, host.weights);
      }
      constexpr std::string_view kLetters =
          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_@:%[]";
      if (host.name.empty() || host.name.size() > 255 || host.name.front() == '-' ||
          host.name.find_first_not_of(kLetters) != std::string::npos)
        problems_.add(item.place, at,
                      fmt::format("invalid machine '{}'; expected a name for ssh: w1, ada@w1", host.name));
      if (!names.insert(host.name).second)
        problems_.add(item.place, at,
                      fmt::format("{} is there twice; expected each machine once", host.name));
      queue.hosts.push_back(std::move(host));
    }
  }

  /// Where a machine has what all machines of its queue have: what trials can be given is the same for each.
  void read_places(const Node& host, const std::string& field, const char* key,
                   const std::map<std::string, std::string>& of_queue,
                   std::map<std::string, std::string>& into) {
    std::map<std::string, std::string> places;
    names(host, field, key, places, true);
    for (const auto& [name, place] : places) {
      if (!of_queue.contains(name))
        problems_.add(
            host.find(key)->entry(name)->place, dotted(dotted(field, key), name),
            fmt::format("the queue's {} has no '{}'; machines that have more are a queue of their own", key,
                        name));
      into[name] = place;
    }
  }

  /// A file that this program reads: absolute, or beside the fleet file.
  std::string file_here(const Node& node, const std::string& field) {
    const std::string text = plain_text(node, field);
    return text.empty() ? text : (folder_ / text).lexically_normal().string();
  }

  /// Keys of one launcher are no others'.
  void expect_keys_of(LauncherKind kind, const Node& queue, const std::string& field) {
    struct Own {
      const char* key;
      LauncherKind kind;
    };
    using enum LauncherKind;
    static constexpr Own kOwn[] = {{"partition", kSlurm},
                                   {"account", kSlurm},
                                   {"qos", kSlurm},
                                   {"gres", kSlurm},
                                   {"constraint", kSlurm},
                                   {"arguments", kSlurm},
                                   {"image", kKubernetes},
                                   {"volumes", kKubernetes},
                                   {"node_selector", kKubernetes},
                                   {"tolerations", kKubernetes},
                                   {"run_as_user", kKubernetes},
                                   {"hosts", kSsh},
                                   {"bundle", kSsh},
                                   {"ssh_config", kSsh}};
    for (const Own& own : kOwn)
      if (const Node* given = queue.find(own.key); given && own.kind != kind)
        problems_.add(given->place, dotted(field, own.key),
                      fmt::format("only for launcher: {}; this is {}", name_of(own.kind), name_of(kind)));
  }

  std::string plain_text(const Node& node, const std::string& field) {
    return yaml_.plain_text(node, field).value_or("");
  }

  std::string path(const Node& node, const std::string& field) {
    std::string text = plain_text(node, field);
    if (!text.empty() && !text.starts_with('/'))
      problems_.add(node.place, field, fmt::format("expected an absolute path; got '{}'", text));
    return text;
  }

  std::string memory_of(const Node& node, const std::string& field) {
    std::string text = plain_text(node, field);
    const auto digits = text.find_first_not_of("0123456789");
    const bool fits =
        digits != 0 &&
        (digits == std::string::npos ||
         (digits + 1 == text.size() && std::string_view{"KMGT"}.find(text.back()) != std::string_view::npos));
    if (!text.empty() && !fits)
      problems_.add(node.place, field, fmt::format("invalid size '{}'; expected such as 64G", text));
    return text;
  }

  void number(const Node& mapping, const std::string& field, const char* key, int low, int high, int& value) {
    if (const Node* node = mapping.find(key))
      if (const auto read = yaml_.whole_number(*node, dotted(field, key), low, high))
        value = static_cast<int>(*read);
  }

  std::optional<double> real(const Node& node, const std::string& field, double low, double high,
                             const char* expected) {
    const auto value = node.json();
    if (value.is_number() && value.get<double>() >= low && value.get<double>() <= high)
      return value.get<double>();
    problems_.add(node.place, field, fmt::format("expected {}; got '{}'", expected, node.text));
    return std::nullopt;
  }

  void time(const Node& node, const std::string& field, seconds low, seconds high, seconds& value) {
    const std::string text = plain_text(node, field);
    if (text.empty()) return;
    const auto read = parse_duration(text);
    if (!read)
      problems_.add(
          node.place, field,
          fmt::format("invalid duration '{}'; expected a whole number and s, m, h, d or w, such as 90s or 8h",
                      text));
    else if (*read < low || *read > high)
      problems_.add(node.place, field,
                    fmt::format("expected {} s to {} d; got {}", low.count(), high.count() / 86400, text));
    else
      value = *read;
  }

  void range(const Node& node, const std::string& field, QueueConfig& queue) {
    if (node.kind == Node::Kind::kScalar) {  // workers: 8
      if (const auto most = yaml_.whole_number(node, field, 1, kMostWorkers))
        queue.max_workers = static_cast<int>(*most);
      return;
    }
    if (!yaml_.is_mapping(node, field)) return;
    yaml_.allow_only(node, field, {"min", "max"});
    number(node, field, "min", 0, kMostWorkers, queue.min_workers);
    queue.max_workers = std::max(1, queue.min_workers);
    if (yaml_.required(node, field, "max", "the largest number of workers"))
      number(node, field, "max", 1, kMostWorkers, queue.max_workers);
    if (queue.min_workers > queue.max_workers)
      problems_.add(
          node.find("min")->place, dotted(field, "min"),
          fmt::format("expected at most max, which is {}; got {}", queue.max_workers, queue.min_workers));
  }

  void names(const Node& mapping, const std::string& field, const char* key,
             std::map<std::string, std::string>& into, bool paths) {
    const Node* node = mapping.find(key);
    if (!node || !yaml_.is_mapping(*node, dotted(field, key))) return;
    for (const Node::Entry& entry : node->entries) {
      const std::string at = dotted(dotted(field, key), entry.key);
      if (entry.key.empty() || entry.key.find('=') != std::string::npos)
        problems_.add(entry.place, at, "invalid name; expected one without '='");
      into[entry.key] = paths ? path(entry.value, at) : plain_text(entry.value, at);
    }
  }

  void words(const Node& mapping, const std::string& field, const char* key, std::vector<std::string>& into,
             const std::function<std::string(const std::string&)>& why_not) {
    const Node* node = mapping.find(key);
    if (!node || !yaml_.is_sequence(*node, dotted(field, key))) return;
    for (const Node& item : node->items) {
      const std::string at = dotted(dotted(field, key), std::to_string(into.size() + 1));
      const std::string word = plain_text(item, at);
      if (const std::string why = word.empty() ? std::string{} : why_not(word); !why.empty())
        problems_.add(item.place, at, fmt::format("'{}': {}", word, why));
      into.push_back(word);
    }
  }

  sweeps::Problems& problems_;
  sweeps::YamlReader yaml_;
  std::filesystem::path folder_;
};

}  // namespace

FleetConfig read_fleet_file(const std::string& text, const std::string& file) {
  sweeps::Problems problems{file};
  const Node root = sweeps::load_yaml(text, file, problems);
  FleetConfig fleet = FleetReader{problems, std::filesystem::absolute(file).parent_path()}.read(root);
  problems.throw_if_any();
  return fleet;
}

}  // namespace abl::launchers
