// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

/// What a program counts of its own work, for those who watch over it (docs/operations.md). Counting is an
/// atomic addition where the thing happens; nothing is looked for when somebody asks.
namespace abl {

/// How often something has happened. Thread: any.
class Tally {
 public:
  void add(std::uint64_t by = 1) { value_.fetch_add(by, std::memory_order_relaxed); }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// How values are spread: how many are no greater than each of some bounds, and their sum. Thread: any.
class Histogram {
 public:
  /// Ascending, 16 at most; beyond the last there is infinity.
  Histogram(std::initializer_list<double> bounds);
  void add(double value);
  void add(std::chrono::steady_clock::duration time) { add(std::chrono::duration<double>(time).count()); }

 private:
  friend class Exposition;
  static constexpr std::size_t kMostBounds = 16;
  std::size_t size_;
  std::array<double, kMostBounds> bounds_{};
  std::array<std::atomic<std::uint64_t>, kMostBounds + 1> counts_{};
  std::atomic<double> sum_{0};
};

/// Bounds for seconds, from a quick lookup to a frozen disk.
inline constexpr std::initializer_list<double> kLatencyBounds{0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03,
                                                              0.1,    0.3,    1,     3,     10};

/// Figures as Prometheus reads them, its text format 0.0.4:
///   exposition.counter("ablate_commits_total", "Transactions committed.").add(commits.value());
///   exposition.gauge("ablate_slots", "Slots of workers.").add(busy, {{"state", "busy"}}).add(free, …);
/// Labels have few values: names of sweeps, trials and runs are none. Thread: one.
class Exposition {
 public:
  static constexpr const char* kType = "text/plain; version=0.0.4; charset=utf-8";
  using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  /// Opens a family: what is added is of it, until another is opened. Each family is opened once. A counter's
  /// name ends with _total.
  Exposition& counter(std::string_view name, std::string_view help) { return open(name, help, "counter"); }
  Exposition& gauge(std::string_view name, std::string_view help) { return open(name, help, "gauge"); }
  Exposition& histogram(std::string_view name, std::string_view help) {
    return open(name, help, "histogram");
  }
  Exposition& add(double value, Labels labels = {});
  Exposition& add(const Tally& tally, Labels labels = {}) {
    return add(static_cast<double>(tally.value()), labels);
  }
  Exposition& add(const Histogram& histogram, Labels labels = {});
  /// Processor time, memory and descriptors of this process, by the names that programs of all kinds give
  /// them (process_…).
  void add_process();

  const std::string& text() const { return text_; }

 private:
  Exposition& open(std::string_view name, std::string_view help, std::string_view type);
  void line(std::string_view suffix, Labels labels, std::string_view bound, double value);

  std::string name_, text_;
};

}  // namespace abl
