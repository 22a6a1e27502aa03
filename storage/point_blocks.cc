// SPDX-License-Identifier: Apache-2.0
#include "storage/point_blocks.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include "storage/stored_number.h"

namespace abl::storage {
namespace {

constexpr int kFineLog2 = 6, kCoarseLog2 = 2;
constexpr int kMostLog2 = 31;

static_assert(std::endian::native == std::endian::little, "blocks are little-endian");

template <class T>
void put(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// Reads numbers one after the other. Throws: Error{kDataLoss} behind the last byte.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : left_{bytes} {}
  bool empty() const { return left_.empty(); }
  template <class T>
  T take() {
    T value;
    expect(left_.size() >= sizeof value);
    std::memcpy(&value, left_.data(), sizeof value);
    left_.remove_prefix(sizeof value);
    return value;
  }
  static void expect(bool right) {
    if (!right)
      throw Error{Code::kDataLoss, "corrupt curve data in the results file; check it with 'ablate doctor'"};
  }

 private:
  std::string_view left_;
};

/// Puts points of a block into 2^parts_log2 parts.
std::vector<Stretch> parts_of(const std::vector<CurvePoint>& points, std::uint64_t first, int steps_log2,
                              int parts_log2) {
  std::vector<Stretch> parts(std::size_t{1} << parts_log2);
  for (const CurvePoint& point : points)
    parts[static_cast<std::size_t>((point.step - first) >> (steps_log2 - parts_log2))].add(point);
  return parts;
}

}  // namespace

std::string packed(const std::vector<Stretch>& parts) {
  std::string bytes;
  for (std::uint32_t place = 0; place < parts.size(); ++place) {
    const Stretch& part = parts[place];
    if (part.empty()) continue;
    const auto kept = part.kept();
    put(bytes, place);
    put(bytes, part.points());
    put(bytes, part.not_finite());
    put(bytes, static_cast<std::uint32_t>(kept.size()));
    put(bytes, part.sum());
    for (const CurvePoint& point : kept)
      put(bytes, point.step), put(bytes, point.value), put(bytes, point.time_ms);
  }
  return bytes;
}

std::vector<PlacedStretch> unpacked(std::string_view packed, std::uint32_t parts) {
  std::vector<PlacedStretch> all;
  Bytes bytes{packed};
  while (!bytes.empty()) {
    const auto place = bytes.take<std::uint32_t>(), points = bytes.take<std::uint32_t>(),
               not_finite = bytes.take<std::uint32_t>(), kept = bytes.take<std::uint32_t>();
    const auto sum = bytes.take<double>();
    Bytes::expect(place < parts && (all.empty() || place > all.back().place));
    Bytes::expect(kept > 0 && kept <= Stretch::kMostKept && points >= kept && not_finite <= points);
    std::array<CurvePoint, Stretch::kMostKept> point;
    for (std::uint32_t i = 0; i < kept; ++i) {
      point[i].step = bytes.take<std::uint32_t>();
      point[i].value = bytes.take<double>();
      point[i].time_ms = bytes.take<std::int64_t>();
      Bytes::expect(i == 0 || point[i].step > point[i - 1].step);
    }
    all.push_back({place, Stretch{{point.data(), kept}, points, not_finite, sum}});
  }
  return all;
}

void PointBlocks::extend(RunId run, std::int64_t metric, int most) {
  std::uint64_t begin =
      db_.prepared(R"sql(SELECT first_step + (1 << steps_log2) FROM point_block
                                           WHERE run_id = :run AND metric_id = :metric ORDER BY first_step DESC LIMIT 1)sql")
          .bind(":run", run)
          .bind(":metric", metric)
          .one([](const Statement& row) { return static_cast<std::uint64_t>(row.integer(0)); })
          .value_or(0);
  for (int made = 0; made < most; ++made) {
    auto points = db_.prepared(R"sql(SELECT step, value, kind, time_ms FROM point
                                     WHERE run_id = :run AND metric_id = :metric AND step >= :from ORDER BY step LIMIT :most)sql")
                      .bind(":run", run)
                      .bind(":metric", metric)
                      .bind(":from", static_cast<std::int64_t>(begin))
                      .bind(":most", kPoints)
                      .all([](const Statement& row) { return stored_point(row); });
    if (points.size() < kPoints) return;
    // the longest block around the first of them that overlaps none before it and ends before the last
    const std::uint64_t behind = std::uint64_t{points.back().step} + 1;
    int log2 = kMostLog2;
    const auto first_of = [&] { return std::uint64_t{points.front().step} >> log2 << log2; };
    while (log2 > kFineLog2 && (first_of() < begin || first_of() + (std::uint64_t{1} << log2) > behind))
      --log2;
    const std::uint64_t first = first_of();
    begin = first + (std::uint64_t{1} << log2);
    std::erase_if(points, [&](const CurvePoint& point) { return point.step >= begin; });
    db_.prepared(
           R"sql(INSERT INTO point_block (run_id, metric_id, first_step, steps_log2, points, coarse, fine)
                       VALUES (:run, :metric, :first, :log2, :points, :coarse, :fine))sql")
        .bind(":run", run)
        .bind(":metric", metric)
        .bind(":first", static_cast<std::int64_t>(first))
        .bind(":log2", log2)
        .bind(":points", static_cast<std::int64_t>(points.size()))
        .bind_blob(":coarse", packed(parts_of(points, first, log2, kCoarseLog2)))
        .bind_blob(":fine", packed(parts_of(points, first, log2, kFineLog2)))
        .run();
  }
}

void PointBlocks::forget(RunId run, std::int64_t metric, std::uint32_t step) {
  db_.prepared(R"sql(DELETE FROM point_block WHERE run_id = :run AND metric_id = :metric
                       AND first_step = (SELECT MAX(first_step) FROM point_block
                                         WHERE run_id = :run AND metric_id = :metric AND first_step <= :step)
                       AND first_step + (1 << steps_log2) > :step)sql")
      .bind(":run", run)
      .bind(":metric", metric)
      .bind(":step", step)
      .run();
}

std::uint64_t PointBlocks::points(RunId run, std::int64_t metric, StepRange range) const {
  return db_
      .prepared(
          R"sql(SELECT COALESCE(SUM(points), 0) FROM point_block WHERE run_id = :run AND metric_id = :metric
                        AND first_step BETWEEN :from AND :to AND first_step + (1 << steps_log2) - 1 <= :to)sql")
      .bind(":run", run)
      .bind(":metric", metric)
      .bind(":from", range.from)
      .bind(":to", range.to)
      .one([](const Statement& row) { return static_cast<std::uint64_t>(row.integer(0)); })
      .value();
}

void PointBlocks::read(RunId run, std::int64_t metric, StepRange range, std::uint32_t bucket_steps,
                       const Parts& parts) const {
  // a block's longest parts that fit into a bucket; those that are not asked for are not read from the file
  auto& blocks = db_.prepared(R"sql(
      SELECT first_step, steps_log2, steps_log2 - 2 <= :bucket_log2,
             CASE WHEN steps_log2 - 2 <= :bucket_log2 THEN coarse ELSE fine END
      FROM point_block WHERE run_id = :run AND metric_id = :metric AND first_step <= :to AND first_step >=
        COALESCE((SELECT MAX(first_step) FROM point_block
                  WHERE run_id = :run AND metric_id = :metric AND first_step <= :from), 0)
        AND steps_log2 - 6 <= :bucket_log2 ORDER BY first_step)sql");
  blocks.bind(":run", run)
      .bind(":metric", metric)
      .bind(":from", range.from)
      .bind(":to", range.to)
      .bind(":bucket_log2", std::bit_width(bucket_steps) - 1);
  std::uint64_t next = range.from;
  const auto points_until = [&](std::uint64_t end) {
    if (next < end)
      read_points(run, metric, {static_cast<std::uint32_t>(next), static_cast<std::uint32_t>(end - 1)},
                  parts.point);
    next = std::max(next, end);
  };
  while (blocks.step()) {
    const auto first = static_cast<std::uint64_t>(blocks.integer(0));
    const int log2 = static_cast<int>(blocks.integer(1)),
              parts_log2 = blocks.integer(2) != 0 ? kCoarseLog2 : kFineLog2;
    Bytes::expect(log2 >= kFineLog2 && log2 <= kMostLog2);
    const std::uint64_t length = std::uint64_t{1} << (log2 - parts_log2);
    points_until(std::min(first, std::uint64_t{range.to} + 1));
    for (const auto& [place, stretch] : unpacked(blocks.text(3), 1U << parts_log2)) {
      const std::uint64_t begin = first + place * length, end = begin + length;
      if (end <= range.from || begin > range.to) continue;
      if (begin >= range.from && end - 1 <= range.to)
        parts.stretch(stretch);
      else  // where the range begins, or ends
        next = std::max(begin, std::uint64_t{range.from}),
        points_until(std::min(end, std::uint64_t{range.to} + 1));
    }
    next = std::max(next, first + (std::uint64_t{1} << log2));
  }
  points_until(std::uint64_t{range.to} + 1);
}

void PointBlocks::read_points(RunId run, std::int64_t metric, StepRange range,
                              const std::function<void(const CurvePoint&)>& point) const {
  auto& points = db_.prepared(R"sql(SELECT step, value, kind, time_ms FROM point
                                    WHERE run_id = :run AND metric_id = :metric AND step BETWEEN :from AND :to ORDER BY step)sql");
  points.bind(":run", run).bind(":metric", metric).bind(":from", range.from).bind(":to", range.to);
  while (points.step()) point(stored_point(points));
}

}  // namespace abl::storage
