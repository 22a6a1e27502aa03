// SPDX-License-Identifier: Apache-2.0
#include "scheduler/annotation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "config/field_table.h"
#include "scheduler/tuning.h"
#include "storage/annotation_store.h"
#include "storage/removal.h"
#include "storage/sweep_store.h"

namespace abl::scheduler {

void check(const Annotation& annotation) {
  static const std::string kLetters = std::string{config::kNameLetters} + "/";
  for (const std::string& tag : annotation.add_tags)
    if (tag.empty() || tag.size() > Annotation::kLongestTag ||
        tag.find_first_not_of(kLetters) != std::string::npos)
      throw Error{Code::kInvalidArgument,
                  fmt::format("invalid tag '{}'; expected at most {} letters, digits, '.', '_', '-' and '/'",
                              tag.substr(0, 2 * Annotation::kLongestTag), Annotation::kLongestTag)};
  if (annotation.add_tags.size() > Annotation::kMostTags)
    throw Error{Code::kInvalidArgument,
                fmt::format("{} tags; the limit is {}", annotation.add_tags.size(), Annotation::kMostTags)};
  if (annotation.notes && annotation.notes->size() > Annotation::kMostNotes)
    throw Error{Code::kInvalidArgument, fmt::format("the notes have {} bytes; the limit is {}",
                                                    annotation.notes->size(), Annotation::kMostNotes)};
}

namespace {

std::vector<std::string> changed_tags(const storage::SweepRecord& sweep, const Annotation& annotation) {
  std::vector<std::string> tags = sweep.tags;
  for (const std::string& tag : annotation.remove_tags) std::erase(tags, tag);
  for (const std::string& tag : annotation.add_tags)
    if (std::ranges::find(tags, tag) == tags.end()) tags.push_back(tag);
  if (tags.size() > Annotation::kMostTags)
    throw Error{Code::kFailedPrecondition, fmt::format("sweep {} would have {} tags; the limit is {}",
                                                       sweep.name, tags.size(), Annotation::kMostTags)};
  return tags;
}

void archive(storage::Database& db, const storage::SweepRecord& sweep, bool archived, Time now) {
  if (archived && sweep.is_open())
    throw Error{
        Code::kFailedPrecondition,
        fmt::format("sweep {} has trials that wait or run: cancel it, or archive it when it has ended",
                    sweep.name)};
  for (const storage::SweepId one : with_tuning(db, sweep.id))
    storage::AnnotationStore{db}.set_archived(one, archived, now);
}

}  // namespace

void annotate(storage::Database& db, const storage::SweepRecord& sweep, const Annotation& annotation,
              Time now) {
  storage::AnnotationStore store{db};
  if (!annotation.add_tags.empty() || !annotation.remove_tags.empty())
    store.set_tags(sweep.id, changed_tags(sweep, annotation));
  if (annotation.pinned) store.set_pinned(sweep.id, *annotation.pinned);
  if (annotation.archived) archive(db, sweep, *annotation.archived, now);
  if (!annotation.notes) return;
  if (annotation.expected_notes && store.notes(sweep.id) != *annotation.expected_notes)
    throw Error{
        Code::kAborted,
        fmt::format("somebody has changed the notes of sweep {} meanwhile: read them again", sweep.name)};
  store.set_notes(sweep.id, *annotation.notes);
}

void annotate_sweep(Coordinator& coordinator, const std::string& sweep, Annotation annotation,
                    Coordinator::Answer<> answer) {
  check(annotation);
  coordinator.change(
      sweep, "is annotated",
      [sweep, annotation = std::move(annotation)](storage::Database& db, Time now) {
        const storage::SweepRecord record = storage::SweepStore{db}.get_brief(sweep);
        storage::Removal{db}.refuse(record.id);
        annotate(db, record, annotation, now);
        return Coordinator::Stops{};
      },
      std::move(answer));
}

}  // namespace abl::scheduler
