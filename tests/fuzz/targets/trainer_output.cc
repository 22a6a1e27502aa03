// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/trainer_output.h"

#include "tests/fuzz/target.h"

namespace abl::fuzz {
namespace {

class StoppedClock final : public Clock {
 public:
  Time now() const override { return Time{std::chrono::hours{480'000}}; }
};

/// What a program that prints these bytes has said in the end, read in pieces of so many.
std::string said_of_trainer_output(std::string_view bytes, std::size_t piece) {
  static const StoppedClock kClock;
  agent::TrainerOutput output{{.directory = "/runs/1/1",
                               .host = "host",
                               .log_end = 1000,
                               .sources = {{.patterns = {"e(?<epoch>\\S*) (?<acc>\\S*)"}}}},
                              kClock};
  for (std::string_view rest = bytes; !rest.empty(); rest.remove_prefix(std::min(piece, rest.size())))
    output.read_stdout(rest.substr(0, piece));
  output.close();
  std::string text = output.batch().SerializeAsString() + output.last_lines() + output.not_finite();
  text += output.log_end();
  if (output.said_end()) text += output.said_end()->reason;
  (void)output.speaks_of_exhaustion();
  text += output.lacks_metrics();
  const auto last = output.take_last({});
  for (const auto& series : last.series()) {
    require(series.steps_size() == series.values_size() && series.steps_size() == series.times_ms_size(),
            "every point has a step, a value and a time");
    for (int i = 1; i < series.steps_size(); ++i)
      require(series.steps(i - 1) < series.steps(i), "the points of a metric ascend by step");
  }
  return text;
}

}  // namespace

/// How a pipe cuts what a program prints must not matter.
void read_trainer_output(std::string_view bytes) {
  require(said_of_trainer_output(bytes, bytes.size() + 1) == said_of_trainer_output(bytes, 7),
          "pieces say what the whole says");
}

}  // namespace abl::fuzz
