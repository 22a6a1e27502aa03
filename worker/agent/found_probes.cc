// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/found_probes.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "protocol/probe_results.h"
#include "worker/agent/held_file.h"

namespace abl::agent {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kLongestFile = 64 << 20;  // arrays beyond what is kept stand in it too

/// A file of the run's folder: what a program names may be anything.
std::string content_of(const fs::path& named, const fs::path& directory, std::size_t most) {
  const auto refused = [&](const std::string& why) {
    return Error{Code::kInvalidArgument, fmt::format("{} {}", named.string(), why)};
  };
  const HeldFile file{directory / named};
  if (!file.is_regular()) throw refused("is not a file");
  if (!file.lies_under(directory)) throw refused("lies outside of the run's folder");
  if (file.bytes() > most) throw refused(fmt::format("has {} bytes; the limit is {}", file.bytes(), most));
  return read_file(file.path());
}

protocol::ProbeResult result_of(const protocol::Probe& said, const fs::path& directory) {
  if (said.path.empty()) return protocol::read_probe_result(said.found);
  const std::string text = content_of(said.path, directory, kLongestFile);
  try {
    return protocol::read_probe_result_text(text);
  } catch (const Error& error) {
    throw Error{error.code(), fmt::format("{}: {}", said.path.string(), error.what())};
  }
}

}  // namespace

ablate::v1::ProbeFound found_probe(const protocol::Probe& said, const fs::path& directory) {
  protocol::ProbeResult found = result_of(said, directory);
  ablate::v1::ProbeFound message;
  message.set_name(protocol::probe_key(found.request));
  message.set_step(static_cast<std::uint32_t>(said.step));
  auto pictures = protocol::take_pictures(
      found, [&](const std::string& file, std::size_t most) { return content_of(file, directory, most); });
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    const protocol::ProbePicture& picture = found.pictures[i];
    auto& told = *message.add_pictures();
    told.set_name(picture.name);
    told.set_width(static_cast<std::uint32_t>(picture.width));
    told.set_height(static_cast<std::uint32_t>(picture.height));
    told.set_sha256(picture.sha256);
    told.set_png(std::move(pictures[i]));
  }
  protocol::bound(found);
  message.set_found_json(
      protocol::to_json(found).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  return message;
}

}  // namespace abl::agent
