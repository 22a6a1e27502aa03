// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/commands/class_names.h"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/printable.h"
#include "config/json.h"
#include "data/image_source.h"

namespace abl::commands {
namespace {

using config::Json;

std::vector<std::string> by_line(const std::string& text) {
  std::vector<std::string> names;
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    names.push_back(printable_line(line));
  }
  while (!names.empty() && names.back().empty()) names.pop_back();
  return names;
}

/// A text, or the last text of a list.
std::string name_in(const Json& value, const std::string& where) {
  const Json& last = value.is_array() && !value.empty() ? value.back() : value;
  if (!last.is_string())
    throw Error{Code::kInvalidArgument, fmt::format("{} is {}; expected a name, or a list that ends with one",
                                                    where, printable_line(value.dump()))};
  return printable_line(last.get<std::string>());
}

std::vector<std::string> from_json(const std::filesystem::path& file) {
  const Json names = config::read_json(file);
  std::vector<std::string> found(names.size());
  if (names.is_array())
    for (std::size_t i = 0; i < found.size(); ++i)
      found[i] = name_in(names[i], fmt::format("{}: entry {}", file.string(), i));
  else {
    std::map<std::size_t, std::string> spellings;  // "1" and "01" are one number
    for (const auto& [key, value] : names.items()) {
      std::size_t number = found.size();
      const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), number);
      if (error != std::errc{} || end != key.data() + key.size() || number >= found.size())
        throw Error{Code::kInvalidArgument,
                    fmt::format("{}: invalid class number '{}'; expected 0 to {}", file.string(),
                                printable_line(key), found.size() - 1)};
      if (const auto& before = spellings.emplace(number, key).first->second; before != key)
        throw Error{Code::kInvalidArgument,
                    fmt::format("{}: '{}' and '{}' are one class; expected a name for each", file.string(),
                                before, key)};
      found[number] = name_in(value, fmt::format("{}: '{}'", file.string(), key));
    }
  }
  return found;
}

}  // namespace

std::vector<std::string> ClassNames::of(const config::DataConfig& data) const {
  if (file.empty() && data_root.empty()) return {};
  if (file.empty()) return data::open_data(data, data_root, data::Needs::kVal).classes;
  const std::string text = read_file(file);
  const auto first = text.find_first_not_of(" \t\r\n");
  const bool is_json = first != text.npos && (text[first] == '[' || text[first] == '{');
  auto names = is_json ? from_json(file) : by_line(text);
  if (names.size() != static_cast<std::size_t>(data.classes))
    throw Error{Code::kInvalidArgument, fmt::format("{}: {} names of classes; the model has {} classes",
                                                    file.string(), names.size(), data.classes)};
  return names;
}

}  // namespace abl::commands
