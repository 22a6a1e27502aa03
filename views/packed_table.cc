// SPDX-License-Identifier: Apache-2.0
#include "views/packed_table.h"

#include <algorithm>
#include <utility>

#include "views/comparison.h"

namespace abl::views {
namespace v1 = ablate::v1;

PackedTable::PackedTable(v1::Table&& table, std::shared_ptr<StatisticsMemo> memo, storage::Table noted)
    : memo_{std::move(memo)}, noted_{std::move(noted)} {
  for (const v1::TableRow& row : table.rows())
    if (const std::string& id = baseline_of(table, row); !id.empty()) compared_with_.try_emplace(id, 0);
  ends_.reserve(static_cast<std::size_t>(table.rows_size()));
  for (const v1::TableRow& row : table.rows()) {
    if (!table.baseline().empty() && row.id() == table.baseline()) baseline_ = rows();
    if (const auto id = compared_with_.find(row.id()); id != compared_with_.end()) id->second = rows();
    row.AppendToString(&bytes_);
    ends_.push_back(bytes_.size());
  }
  bytes_.shrink_to_fit();
  if (google::protobuf::Arena* const arena = table.GetArena())  // which frees them with the rest
    google::protobuf::Arena::CreateMessage<v1::Table>(arena)->mutable_rows()->Swap(table.mutable_rows());
  else
    google::protobuf::RepeatedPtrField<v1::TableRow>{}.Swap(table.mutable_rows());
  head_ = std::move(table);
}

std::size_t PackedTable::bytes() const {
  std::size_t noted = (noted_.diverged.size() + noted_.lost.size() + noted_.packed.size()) *
                      (sizeof(storage::LostMetrics) + 64);  // about
  for (const storage::TableRow& row : noted_.rows)
    noted += sizeof row + row.cells.size() * sizeof(storage::Cell);
  for (const auto& rows : noted_.equal_rows) noted += rows.size() * (sizeof rows.front() + 32);
  return head_.SpaceUsedLong() + bytes_.capacity() + ends_.capacity() * sizeof(std::size_t) + noted;
}

v1::TableRow PackedTable::row(std::size_t index) const {
  const std::size_t begin = index == 0 ? 0 : ends_[index - 1];
  v1::TableRow row;
  row.ParseFromArray(bytes_.data() + begin, static_cast<int>(ends_[index] - begin));
  return row;
}

void PackedTable::add_statistics_to(v1::Table& part) const {
  std::unordered_map<std::string, v1::TableRow> baselines;
  for (v1::TableRow& of : *part.mutable_rows()) {
    const std::string& id = baseline_of(head_, of);
    const auto place = compared_with_.find(id);
    const v1::TableRow* baseline = nullptr;
    if (place != compared_with_.end()) {
      const auto [known, fresh] = baselines.try_emplace(id);
      if (fresh) known->second = row(place->second);
      if (known->second.id() == id) baseline = &known->second;  // else the table has no such row
    }
    add_statistics(head_, baseline, of, memo_.get());
  }
}

v1::Table PackedTable::part(const Page& page) const {
  v1::Table part = head_;
  const std::uint32_t first = std::min(page.first, rows());
  std::uint32_t count = std::min(page.count, rows() - first);
  if (const std::size_t begin = first == 0 ? 0 : ends_[first - 1];
      count > 1 && ends_[first + count - 1] - begin > page.most_bytes) {
    const auto from = ends_.begin() + first;
    const auto end = std::ranges::upper_bound(from, from + count, begin + page.most_bytes);
    count = std::max(1u, static_cast<std::uint32_t>(end - from));
  }
  const auto is_elsewhere = [&](std::uint32_t row) { return row < first || row - first >= count; };
  const bool more = page.with_baseline && baseline_ && is_elsewhere(*baseline_);
  if (more && *baseline_ < first) *part.add_rows() = row(*baseline_);
  for (std::uint32_t i = first; i < first + count; ++i) *part.add_rows() = row(i);
  if (more && *baseline_ >= first) *part.add_rows() = row(*baseline_);
  if (page.with_statistics && !head_.pivoted()) add_statistics_to(part);
  part.set_left_out(rows() - static_cast<std::uint32_t>(part.rows_size()));
  if (first + count < rows()) part.set_next(first + count);
  return part;
}

}  // namespace abl::views
