// SPDX-License-Identifier: Apache-2.0
#include "protocol/probe_results.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/json_depth.h"
#include "base/sha256.h"
#include "base/utf8.h"
#include "protocol/number.h"

namespace abl::protocol {
namespace {

using nlohmann::json;

constexpr std::size_t kLongestName = 80, kLongestNote = 1000;
constexpr std::size_t kMostValues = 1000, kMostNotes = 100, kMostAxes = 8, kMostArrays = 64;

Error wrong_key(const std::string& key, std::string_view expected) {
  return Error{Code::kInvalidArgument, fmt::format("\"{}\" must be {}", key, expected)};
}

const json* part(const json& written, const char* key, json::value_t kind, std::string_view expected) {
  const auto found = written.find(key);
  if (found == written.end()) return nullptr;
  if (found->type() != kind) throw wrong_key(key, expected);
  return &*found;
}

ProbeArray read_array(const json& written, const std::string& key) {
  constexpr auto kExpected =
      "{\"axes\": [{\"name\": …, \"places\": […]}, …], \"values\": [numbers, the last axis the fastest]}";
  if (!written.is_object() || !written.contains("axes") || !written.contains("values"))
    throw wrong_key(key, kExpected);
  const json &axes = written["axes"], &values = written["values"];
  if (!axes.is_array() || axes.empty() || axes.size() > kMostAxes || !values.is_array())
    throw wrong_key(key, kExpected);
  ProbeArray array;
  std::size_t places = 1;
  for (const json& axis : axes) {
    const auto name = axis.is_object() ? axis.find("name") : axis.end();
    if (!axis.is_object() || name == axis.end() || !name->is_string() || !axis.contains("places") ||
        !axis["places"].is_array())
      throw wrong_key(key + ".axes", kExpected);
    auto& read = array.axes.emplace_back(ProbeArray::Axis{.name = name->get<std::string>(), .places = {}});
    for (const json& place : axis["places"])
      read.places.push_back(place.is_string() ? place.get<std::string>() : place.dump());
    places *= read.places.size();
    if (places > values.size()) break;  // before it is beyond what a number holds
  }
  if (places != values.size())
    throw wrong_key(key + ".values", "as many numbers as the product of the axes' places");
  for (const json& value : values) {
    const auto number = number_of(value);
    if (!number) throw wrong_key(key + ".values", "numbers");
    array.values.push_back(*number);
  }
  return array;
}

ProbePicture read_picture(const json& written) {
  constexpr auto kExpected = "a list of {\"name\": …, \"file\": a PNG in the run's folder}";
  if (!written.is_object() || !written.contains("name") || !written["name"].is_string() ||
      (written.contains("file") && !written["file"].is_string()))
    throw wrong_key("pictures", kExpected);
  ProbePicture picture{.name = written["name"].get<std::string>(), .file = written.value("file", "")};
  expect_probe_name(picture.name, "pictures.name");
  return picture;
}

}  // namespace

void expect_probe_name(const std::string& name, const std::string& key) {
  const bool printed =
      std::ranges::none_of(name, [](unsigned char c) { return c < 0x20 || c == 0x7f || c == '/'; });
  if (name.empty() || name.size() > kLongestName || !printed || name.starts_with('.') ||
      valid_utf8(name) != name)
    throw wrong_key(key, fmt::format("a name of at most {} bytes without a slash", kLongestName));
}

std::string probe_key(const ProbeRequest& probe) {
  const auto& all = probe_declarations();
  const auto declared = std::ranges::find_if(all, [&](const auto& one) { return probe.name == one.name; });
  if (declared == all.end()) return probe.name;
  std::string settings;
  for (const ProbeSetting& setting : declared->settings) {
    const auto given = probe.settings.find(setting.name);
    if (given == probe.settings.end() || *given == setting.fallback) continue;
    std::string text = given->dump();  // true, 8, [16,32]
    std::erase_if(text, [](char c) { return c == '[' || c == ']'; });
    std::ranges::replace(text, ',', '+');
    settings += fmt::format("{}{}={}", settings.empty() ? "" : ",", setting.name, text);
  }
  constexpr std::size_t kLongestSettings = 100;  // a file may be named so
  if (settings.size() > kLongestSettings) settings = sha256_hex(settings).substr(0, 16);
  return settings.empty() ? probe.name : fmt::format("{}({})", probe.name, settings);
}

std::string probe_metric(std::string_view key, std::string_view value) {
  return fmt::format("{}{}/{}", kProbeMetrics, key, value);
}

bool is_probe_metric(std::string_view metric) { return metric.starts_with(kProbeMetrics); }

const ProbeValue* value_declared(std::string_view metric) {
  std::string_view name = probe_of_metric(metric);
  name = name.substr(0, name.find('('));
  const auto& all = probe_declarations();
  const auto declared = std::ranges::find_if(all, [&](const auto& one) { return name == one.name; });
  return declared == all.end() ? nullptr : find_value(*declared, value_of_metric(metric));
}

std::string_view probe_of_metric(std::string_view metric) {
  if (!is_probe_metric(metric)) return {};
  metric.remove_prefix(kProbeMetrics.size());
  return metric.substr(0, metric.find('/'));
}

std::string_view value_of_metric(std::string_view metric) {
  const auto slash = metric.find('/');
  return slash == std::string_view::npos ? std::string_view{} : metric.substr(slash + 1);
}

ProbeResult read_probe_result_text(std::string_view text) {
  if (is_nested_too_deep(text)) throw Error{Code::kInvalidArgument, "the probe result is nested too deeply"};
  const auto written = json::parse(with_quoted_non_finite(text), nullptr, false);
  if (!written.is_object()) throw Error{Code::kInvalidArgument, "the probe result is not a JSON object"};
  return read_probe_result(written);
}

ProbeResult read_probe_result(const json& written) {
  using Kind = json::value_t;
  if (!written.is_object()) throw Error{Code::kInvalidArgument, "a probe result must be a JSON object"};
  const json* name = part(written, "probe", Kind::string, "the probe's name");
  if (!name) throw wrong_key("probe", "the probe's name");
  ProbeResult result{.request = {.name = name->get<std::string>()}};
  expect_probe_name(result.request.name, "probe");
  if (const json* settings = part(written, "settings", Kind::object, "an object"))
    result.request.settings = *settings;
  if (const json* values = part(written, "values", Kind::object, "an object of numbers")) {
    if (values->size() > kMostValues)
      throw wrong_key("values", fmt::format("an object of at most {} numbers", kMostValues));
    for (const auto& [key, value] : values->items()) {
      expect_probe_name(key, "values");
      const auto number = number_of(value);
      if (!number) throw wrong_key("values." + key, "a number, NaN, Infinity or -Infinity");
      result.values.emplace(key, *number);
    }
  }
  if (const json* arrays = part(written, "arrays", Kind::object, "an object of arrays")) {
    if (arrays->size() > kMostArrays)
      throw wrong_key("arrays", fmt::format("an object of at most {} arrays", kMostArrays));
    for (const auto& [key, array] : arrays->items()) {
      expect_probe_name(key, "arrays");
      result.arrays.emplace(key, read_array(array, "arrays." + key));
    }
  }
  if (const json* pictures = part(written, "pictures", Kind::array, "a list"))
    for (const json& picture : *pictures) result.pictures.push_back(read_picture(picture));
  if (result.pictures.size() > kMostPictures)
    throw wrong_key("pictures", fmt::format("a list of at most {}", kMostPictures));
  if (const json* notes = part(written, "notes", Kind::array, "a list of texts"))
    for (const json& note : *notes) {
      if (!note.is_string()) throw wrong_key("notes", "a list of texts");
      if (result.notes.size() < kMostNotes)
        result.notes.push_back(valid_utf8(note.get<std::string>().substr(0, kLongestNote)));
    }
  if (const json* missing = part(written, "missing", Kind::string, "a text"))
    result.missing = valid_utf8(missing->get<std::string>().substr(0, kLongestNote));
  return result;
}

std::optional<PngSize> png_size(std::string_view bytes) {
  using namespace std::string_view_literals;
  constexpr auto kBegin = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR"sv;
  constexpr std::size_t kHeader = 8;
  if (!bytes.starts_with(kBegin) || bytes.size() < kBegin.size() + kHeader) return std::nullopt;
  const auto number = [&](std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
    return value;
  };
  const auto width = number(kBegin.size()), height = number(kBegin.size() + 4);
  constexpr std::uint32_t kLongestSide = 1 << 15;
  if (width == 0 || height == 0 || width > kLongestSide || height > kLongestSide) return std::nullopt;
  return PngSize{static_cast<int>(width), static_cast<int>(height)};
}

std::vector<std::string> take_pictures(
    ProbeResult& result, const std::function<std::string(const std::string& file, std::size_t most)>& read) {
  std::vector<std::string> contents;
  std::size_t bytes = 0;
  for (ProbePicture& picture : std::exchange(result.pictures, {})) {
    if (picture.file.empty()) continue;
    try {
      std::string png = read(picture.file, kMostPictureBytes - bytes);
      const auto size = png_size(png);
      if (!size) throw Error{Code::kInvalidArgument, picture.file + " is not a PNG"};
      bytes += png.size();
      picture.sha256 = sha256_hex(png), picture.bytes = png.size();
      picture.width = size->width, picture.height = size->height;
      picture.file.clear();  // a path of this machine
      result.pictures.push_back(std::move(picture));
      contents.push_back(std::move(png));
    } catch (const Error& error) {
      result.notes.push_back(fmt::format("picture {} left out: {}", picture.name, error.what()));
    }
  }
  return contents;
}

void bound(ProbeResult& result) {
  const auto size = [](const ProbeResult& of) {
    return to_json(of).dump(-1, ' ', false, json::error_handler_t::replace).size();
  };
  std::size_t bytes = size(result);
  if (bytes <= kMostFoundBytes) return;
  std::vector<std::pair<std::size_t, std::string>> arrays;  // the smallest first
  for (const auto& [name, array] : result.arrays)
    arrays.emplace_back(size({.arrays = {{name, array}}}), name);
  std::ranges::sort(arrays);
  std::vector<std::string> left_out;
  constexpr std::size_t kForTheNote = 8 << 10;  // of up to 64 names
  for (; !arrays.empty() && bytes + kForTheNote > kMostFoundBytes; arrays.pop_back()) {
    bytes -= std::min(bytes, arrays.back().first);
    result.arrays.erase(arrays.back().second);
    left_out.push_back(arrays.back().second);
  }
  if (!left_out.empty())
    result.notes.push_back(fmt::format(
        "kept in the run's folder only, because a probe result is limited to {} KiB: {} {}",
        kMostFoundBytes >> 10, left_out.size() == 1 ? "array" : "arrays", fmt::join(left_out, ", ")));
  if (const auto rest = size(result); rest > kMostFoundBytes)
    throw Error{Code::kInvalidArgument, fmt::format("the result of probe {} has {} bytes; the limit is {}",
                                                    result.request.name, rest, kMostFoundBytes)};
}

}  // namespace abl::protocol
