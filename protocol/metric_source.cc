// SPDX-License-Identifier: Apache-2.0
#include "protocol/metric_source.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace abl::protocol {
using nlohmann::json;
namespace {

json to_json(const MetricSource& source) {
  json written = json::object();
  const std::string key{name_of(source.kind)};
  if (source.kind == MetricSource::Kind::kPattern)
    written[key] = source.patterns;
  else
    written[key] = source.path;
  // pairs: names of columns may be any text, and the keys of a document are ASCII
  for (const auto& [found, name] : source.names) written["names"].push_back({found, name});
  if (!source.step.empty()) written["step"] = source.step;
  if (!source.split.empty()) written["split"] = source.split;
  if (source.stream != MetricSource::Stream::kBoth) written["stream"] = name_of(source.stream);
  if (source.take != MetricSource::Take::kLast) written["take"] = name_of(source.take);
  return written;
}

/// Throws: nlohmann::json::exception, Error.
MetricSource read(const json& written) {
  MetricSource source;
  int kinds = 0;
  for (const auto kind : values_of<MetricSource::Kind>()) {
    const auto value = written.find(name_of(kind));
    if (value == written.end()) continue;
    source.kind = kind;
    ++kinds;
    if (kind == MetricSource::Kind::kPattern)
      source.patterns = value->get<std::vector<std::string>>();
    else
      source.path = value->get<std::string>();
  }
  if (kinds != 1) throw Error{Code::kInvalidArgument, "expected one of pattern, file and tensorboard"};
  for (const json& pair : written.value("names", json::array()))
    source.names[pair.at(0).get<std::string>()] = pair.at(1).get<std::string>();
  source.step = written.value("step", "");
  source.split = written.value("split", "");
  const auto stream = value_named<MetricSource::Stream>(written.value("stream", "both"));
  const auto take = value_named<MetricSource::Take>(written.value("take", "last"));
  if (!stream || !take) throw Error{Code::kInvalidArgument, "unknown stream or take"};
  source.stream = *stream;
  source.take = *take;
  return source;
}

}  // namespace

std::string metric_name(const MetricSource& source, const std::string& found) {
  if (const auto name = source.names.find(found); name != source.names.end()) return name->second;
  return source.split.empty() ? found : fmt::format("{}/{}", source.split, found);
}

json to_json(const std::vector<MetricSource>& sources) {
  json written = json::array();
  for (const MetricSource& source : sources) written.push_back(to_json(source));
  return written;
}

std::vector<MetricSource> metric_sources(const json& written) {
  std::vector<MetricSource> sources;
  const auto wrong = [](const char* what) {
    return Error{Code::kInvalidArgument, fmt::format("the trial's metrics cannot be read: {}", what)};
  };
  try {
    for (const json& source : written) sources.push_back(read(source));
  } catch (const json::exception& error) {
    throw wrong(error.what());
  } catch (const Error& error) {
    throw wrong(error.what());
  }
  return sources;
}

}  // namespace abl::protocol
