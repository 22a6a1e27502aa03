// SPDX-License-Identifier: Apache-2.0
#include "cli/watch.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>

#include "base/error.h"
#include "cli/client.h"
#include "cli/format.h"
#include "cli/shown.h"
#include "cli/source.h"
#include "cli/watch_screen.h"
#include "cli/words.h"
#include "printing/table.h"
#include "views/json.h"

namespace abl::cli {
namespace {

using namespace ablate::v1;
using namespace std::chrono_literals;

constexpr auto kQuiet = 5s;  // between two lines that say nothing but the progress

std::string goodbye_text;  // set before a signal may come

/// Ctrl-C stops the watching, not the sweep.
void say_goodbye(int) {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, goodbye_text.data(), goodbye_text.size());
  _exit(kExitInterrupted);
}

/// Shows each message in the way that fits the output.
class Watcher {
 public:
  explicit Watcher(const Context& context) : context_{context}, redraw_{context.out} {}

  void show(const SweepProgress& progress) {
    const auto news = screen_.update(shown(progress, context_.out));
    if (context_.json) {
      context_.out.line(views::to_json(progress));
    } else if (context_.out.interactive()) {
      redraw_.draw(screen_.lines(context_.out));
    } else {
      if (!progress.trouble().empty()) context_.note(screen_.trouble());
      for (const auto& line : news) context_.out.line(line);
      say_why_trials_wait();
      const auto now = std::chrono::steady_clock::now();
      if (last_ && news.empty() && now - *last_ < kQuiet) return;
      last_ = now;
      context_.out.line(screen_.status());
    }
  }

  int finish() {
    const bool completed = screen_.summary().state() == SWEEP_STATE_COMPLETED;
    if (!context_.json) {
      redraw_.clear();  // the picture may have been cut: the table is the last word, and whole
      context_.out.write((context_.out.interactive() ? "" : "\n") + last_word());
      context_.out.line("");
      context_.out.line(summary_text(screen_.summary(), context_.out) + elapsed());
      for (const auto& line : screen_.failures()) context_.err.line(shown(line, context_.err));
    }
    return completed ? kExitOk : kExitFailed;
  }

  bool finished() const { return is_finished(screen_.summary().state()); }
  std::uint64_t number() const { return screen_.number(); }

 private:
  std::string last_word() const {
    const Table table = whole_table();
    if (!table.search())
      return printing::render_table(shown(table, context_.out), printing::TableFormat::kText, &context_.out);
    const auto points = open_source(context_)->tuning(table.sweep());
    return printing::tuning_text(shown(points, context_.out), printing::TableFormat::kText, &context_.out);
  }
  Table whole_table() const {
    return screen_.table().left_out() == 0 ? screen_.table()
                                           : open_source(context_)->table(screen_.table().sweep());
  }
  /// A sweep that nobody can run would otherwise be 0 % for ever without a word.
  void say_why_trials_wait() {
    auto reasons = screen_.reasons();
    if (!std::ranges::includes(said_, reasons))
      for (const auto& line : screen_.waiting()) context_.out.line(line);
    said_.merge(reasons);
  }
  std::string elapsed() const {
    const auto& summary = screen_.summary();
    if (!summary.has_finished()) return "";
    const auto seconds = [](const google::protobuf::Timestamp& time) {
      return static_cast<double>(time.seconds()) + time.nanos() * 1e-9;
    };
    return ", in " + format_duration(std::max(0.0, seconds(summary.finished()) - seconds(summary.created())));
  }

  const Context& context_;
  WatchScreen screen_;
  Redraw redraw_;
  std::set<std::string> said_;  // reasons of waiting trials
  std::optional<std::chrono::steady_clock::time_point> last_;
};

}  // namespace

int watch(const Context& context, const std::string& sweep, const std::string& goodbye) {
  goodbye_text = goodbye;
  signal(SIGINT, say_goodbye);
  Client client{context};
  SweepRequest request;
  request.set_sweep(sweep);
  Watcher watcher{context};
  bool waiting = false;
  with_reconnection(
      [&](bool& progress) {
        const std::function<void(const SweepProgress&)> show = [&](const SweepProgress& message) {
          progress = true;
          waiting = false;
          watcher.show(message);
        };
        request.set_since(watcher.number());
        client.stream(&Sweeps::Stub::WatchSweep, request, show, 3600s);
        if (!watcher.finished())
          throw Error{Code::kUnavailable, "the scheduler closed the stream before the sweep was finished"};
      },
      [&](const Error&) {
        if (!waiting) context.note("the scheduler does not answer; waiting for it to come back");
        waiting = true;
      });
  return watcher.finish();
}

}  // namespace abl::cli
