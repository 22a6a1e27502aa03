// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "exchange/readers.h"
#include "exchange/records.h"
#include "protocol/number.h"

namespace abl::exchange {
namespace {

using nlohmann::json;

constexpr std::size_t kLongestLine = 16 << 20;
constexpr int kDeepest = 32;
constexpr std::size_t kMostKeys = 100'000;

std::string json_text(const std::string& text) {
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

/// Makes fields of an object while it is parsed: "recipe.lr" for what is nested; a list is a text, as it
/// would be written. Its methods are as nlohmann::json_sax has them.
class FieldsOfLine final : public nlohmann::json_sax<json> {
 public:
  explicit FieldsOfLine(std::vector<Field>& fields) : fields_{fields} {}

  /// What is wrong with the line, and where; empty: nothing.
  const std::string& problem() const { return problem_; }
  std::size_t place() const { return place_; }  ///< in bytes from 1

  bool null() override { return take("null", true, true); }
  bool boolean(bool value) override { return take(value ? "true" : "false", true); }
  bool number_integer(number_integer_t value) override { return take(fmt::to_string(value), false); }
  bool number_unsigned(number_unsigned_t value) override { return take(fmt::to_string(value), false); }
  bool number_float(number_float_t, const string_t& written) override { return take(written, false); }
  bool string(string_t& value) override {
    if (in_list()) return take(json_text(value), true);
    // "NaN" is a number that JSON has no word for
    return take(value, !(value == "NaN" || value == "Infinity" || value == "-Infinity"));
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override {
    if (++depth_ > kDeepest) return refuse(1, fmt::format("nested deeper than {}", kDeepest));
    if (in_list()) return open('{');
    if (depth_ > 1) path_ += '.';
    paths_.push_back(path_.size());
    return true;
  }
  bool key(string_t& name) override {
    if (in_list()) {
      separate();
      list_ += json_text(name) + ":";
      needs_comma_ = false;
    } else {
      path_.resize(paths_.back());
      path_ += name;
    }
    return true;
  }
  bool end_object() override {
    --depth_;
    if (in_list()) return close('}');
    path_.resize(paths_.back() == 0 ? 0 : paths_.back() - 1);
    paths_.pop_back();
    return true;
  }
  bool start_array(std::size_t) override {
    if (++depth_ > kDeepest) return refuse(1, fmt::format("nested deeper than {}", kDeepest));
    if (depth_ == 1) return refuse(1, kNoObject);
    ++lists_;
    return open('[');
  }
  bool end_array() override {
    --depth_;
    close(']');
    if (--lists_ > 0) return true;
    needs_comma_ = false;
    return take(std::exchange(list_, {}), true);
  }
  bool parse_error(std::size_t place, const std::string&, const json::exception& error) override {
    const bool too_large = dynamic_cast<const json::out_of_range*>(&error) != nullptr;
    return refuse(too_large ? 1 : place,
                  too_large ? "a number is beyond what a double holds" : "not valid JSON");
  }

 private:
  static constexpr const char* kNoObject = "expected an object, {\"step\": …}";
  bool in_list() const { return lists_ > 0; }
  bool refuse(std::size_t place, std::string what) {
    place_ = place, problem_ = std::move(what);
    return false;
  }
  bool take(std::string text, bool is_text, bool is_null = false) {
    if (depth_ == 0) return refuse(1, kNoObject);
    if (in_list()) {
      separate();
      list_ += text;
      needs_comma_ = true;
    } else if (!is_null) {
      fields_.push_back({.name = path_, .text = std::move(text), .is_text = is_text});
    }
    return true;
  }
  void separate() {
    if (needs_comma_) list_ += ',';
  }
  bool open(char bracket) {
    separate();
    list_ += bracket;
    needs_comma_ = false;
    return true;
  }
  bool close(char bracket) {
    list_ += bracket;
    return needs_comma_ = true;
  }

  std::vector<Field>& fields_;
  std::string path_;                ///< of the key that is being read
  std::vector<std::size_t> paths_;  ///< lengths of those of the objects around it
  std::string list_;
  int depth_ = 0, lists_ = 0;
  bool needs_comma_ = false;
  std::string problem_;
  std::size_t place_ = 1;
};

/// What a program prints for ablate: {"event": "metric", "step": 1, "values": {"acc": 0.5}} has acc at
/// step 1. False for another event, which has nothing for a table.
bool take_event(std::vector<Field>& fields) {
  constexpr std::string_view kValues = "values.";
  const auto event = std::ranges::find(fields, "event", &Field::name);
  if (event == fields.end()) return true;
  if (event->text != "metric") return false;
  std::erase_if(fields,
                [&](const Field& field) { return field.name != "step" && !field.name.starts_with(kValues); });
  for (Field& field : fields)
    if (field.name != "step") field.name.erase(0, kValues.size());
  return true;
}

/// One line of a file, without its end. False at the end of the file. One that is too long is cut.
bool read_line(std::istream& in, std::string& line) {
  line.clear();
  std::array<char, 4096> piece;
  while (line.size() <= kLongestLine) {
    in.getline(piece.data(), piece.size());
    const auto got = static_cast<std::size_t>(in.gcount());
    const bool is_full = in.fail() && !in.eof() && got + 1 == piece.size();
    const bool has_line_end = in.good();
    line.append(piece.data(), has_line_end ? got - 1 : got);
    if (has_line_end) return true;
    if (!is_full) return !line.empty();
    in.clear();
  }
  return true;
}

/// Calls `take` for each object, with the number of its line.
void each_object(const std::filesystem::path& file,
                 const std::function<void(std::size_t line, const std::vector<Field>& fields)>& take) {
  std::ifstream in{file, std::ios::binary};
  if (!in) throw system_error("cannot read " + file.string(), errno);
  std::string line;
  std::vector<Field> fields;
  for (std::size_t number = 1; read_line(in, line); ++number) {
    const auto refuse = [&](std::size_t column, const std::string& what) {
      throw Error{Code::kInvalidArgument, fmt::format("{}:{}:{}: {}", file.string(), number, column, what)};
    };
    if (line.size() > kLongestLine) refuse(1, "a line of more than 16 MiB");
    const auto first = line.find_first_not_of(" \t\r\xEF\xBB\xBF");
    if (first == std::string::npos) continue;
    fields.clear();
    FieldsOfLine reader{fields};
    if (!json::sax_parse(protocol::with_quoted_non_finite(std::string_view{line}.substr(first)), &reader))
      refuse(first + reader.place(), reader.problem());
    if (!take_event(fields)) continue;
    take(number, fields);
  }
  if (in.bad()) throw system_error("cannot read " + file.string(), EIO);
}

}  // namespace

/// Twice: a key that is the step of most lines may come after one that only looks like it.
std::vector<std::string> read_json_lines(const std::filesystem::path& file, const Mapping& mapping,
                                         Sink& sink) {
  std::vector<std::string> keys;
  std::unordered_set<std::string> known;
  each_object(file, [&](std::size_t line, const std::vector<Field>& fields) {
    for (const Field& field : fields)
      if (known.insert(field.name).second) keys.push_back(field.name);
    if (keys.size() > kMostKeys)
      throw Error{Code::kInvalidArgument, fmt::format("{}:{}:1: more than {} different keys; expected the "
                                                      "same few on every line, such as step and acc",
                                                      file.string(), line, kMostKeys)};
  });
  Records records{file.string(), mapping, sink};
  if (!keys.empty()) records.expect(keys);
  each_object(file, [&](std::size_t line, const std::vector<Field>& fields) { records.add(line, fields); });
  return records.notes();
}

}  // namespace abl::exchange
