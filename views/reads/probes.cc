// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/nearest_name.h"
#include "base/sha256.h"
#include "storage/probe_store.h"
#include "storage/trial_store.h"
#include "views/convert.h"
#include "views/read.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using nlohmann::ordered_json;

v1::ProbeFound message_of(storage::StoredProbe&& probe, bool whole) {
  v1::ProbeFound message;
  message.set_name(probe.name);
  message.set_step(probe.step);
  *message.mutable_time() = to_proto(probe.time);
  if (whole) {
    message.set_found_json(std::move(probe.found_json));
  } else {
    auto found = ordered_json::parse(probe.found_json);
    found.erase("arrays");
    message.set_found_json(found.dump());
  }
  for (auto& picture : probe.pictures) {
    v1::ProbePicture& told = *message.add_pictures();
    told.set_name(picture.name);
    told.set_width(picture.width);
    told.set_height(picture.height);
    told.set_sha256(picture.sha256);
    told.set_png(std::move(picture.png));
  }
  return message;
}

}  // namespace

v1::ProbesResponse probes(storage::Database& db, const v1::ProbesRequest& request) {
  const storage::Transaction snapshot{db, storage::Transaction::kRead};
  storage::TrialStore{db}.run(request.run());  // throws kNotFound
  const storage::ProbeStore store{db};
  v1::ProbesResponse response;
  if (request.name().empty()) {
    for (auto& probe : store.of(request.run())) *response.add_probes() = message_of(std::move(probe), false);
    return response;
  }
  auto probe = store.find(request.run(), request.name());
  std::vector<std::string> names, of_that_name;
  if (!probe)
    for (const auto& other : store.of(request.run())) {
      names.push_back(other.name);
      if (other.name.starts_with(request.name() + "(")) of_that_name.push_back(other.name);
    }
  if (of_that_name.size() == 1) probe = store.find(request.run(), of_that_name.front());
  if (!probe) {
    if (!of_that_name.empty()) names = std::move(of_that_name);
    throw Error{Code::kNotFound,
                fmt::format("run {} has no result of probe {}{}{}", request.run(), request.name(),
                            names.empty() ? "" : fmt::format("; expected {}", any_of(names)),
                            did_you_mean(request.name(), names))};
  }
  *response.add_probes() = message_of(*std::move(probe), true);
  return response;
}

ProbeRecord probe_record(const v1::ProbeFound& message) {
  if (message.found_json().size() > 2 * protocol::kMostFoundBytes)
    throw Error{Code::kInvalidArgument,
                fmt::format("the result of probe {} has {} bytes; the limit is {}", message.name(),
                            message.found_json().size(), protocol::kMostFoundBytes)};
  ProbeRecord record{.found = protocol::read_probe_result_text(message.found_json()), .step = message.step()};
  if (protocol::probe_key(record.found.request) != message.name())
    throw Error{Code::kInvalidArgument, fmt::format("the result of probe {} says that it is of probe {}",
                                                    message.name(), record.found.request.name)};
  record.found.pictures.clear();
  std::size_t bytes = 0;
  for (const auto& picture : message.pictures()) {
    protocol::expect_probe_name(picture.name(), "pictures.name");
    const auto size = protocol::png_size(picture.png());
    bytes += picture.png().size();
    if (!size || bytes > protocol::kMostPictureBytes ||
        static_cast<std::size_t>(message.pictures_size()) > protocol::kMostPictures)
      throw Error{Code::kInvalidArgument,
                  fmt::format("picture {} of probe {}: expected a PNG, and at most {} of {} KiB together",
                              picture.name(), message.name(), protocol::kMostPictures,
                              protocol::kMostPictureBytes >> 10)};
    record.found.pictures.push_back({.name = picture.name(),
                                     .file = {},
                                     .sha256 = sha256_hex(picture.png()),
                                     .bytes = picture.png().size(),
                                     .width = size->width,
                                     .height = size->height});
    record.pictures.push_back({.name = picture.name(),
                               .sha256 = record.found.pictures.back().sha256,
                               .width = static_cast<std::uint32_t>(size->width),
                               .height = static_cast<std::uint32_t>(size->height),
                               .png = picture.png()});
  }
  protocol::bound(record.found);
  return record;
}

extern const Read kProbesRead{
    .path = "runs/*/probes",
    .of = &kRunOfPath,
    .about = "Probe results of the run's model; arrays and pictures only with `name`",
    .parameters = {{.name = "name", .about = "Only this probe, with its arrays, and its pictures in base64"}},
    .message = v1::ProbesResponse::descriptor,
    .answer =
        [](const Query& query, const Stored& stored) {
          v1::ProbesRequest request;
          request.set_run(parse_id("run", query.name));
          request.set_name(query.text("name"));
          return to_json(probes(stored.db, request));
        },
};

}  // namespace abl::views
