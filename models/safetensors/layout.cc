// SPDX-License-Identifier: Apache-2.0
#include "models/safetensors/layout.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/printable.h"

namespace abl::models::safetensors {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;
constexpr std::uint64_t kMaxDimensions = 64;
constexpr std::uint64_t kMaxTensorBytes = std::numeric_limits<std::int64_t>::max();

/// A name as it can stand in a message of one line, whatever bytes it holds.
std::string shown(std::string_view name) {
  constexpr std::size_t kLongest = 200;
  const auto escaped = Json(std::string{name.substr(0, kLongest)})
                           .dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
  return fmt::format("'{}'{}", std::string_view{escaped}.substr(1, escaped.size() - 2),
                     name.size() > kLongest ? "…" : "");
}

/// JSON whose objects name no key twice and nest no deeper than the format does: {name: {key: [number]}}.
Json parse_strictly(std::string_view text) {
  std::vector<std::set<std::string>> keys;
  const auto judge = [&keys](int depth, Json::parse_event_t event, Json& parsed) {
    using enum Json::parse_event_t;
    if ((event == object_start || event == array_start) && depth > 2)
      throw Error{Code::kDataLoss, "the header nests deeper than the format does"};
    if (event == object_start) keys.emplace_back();
    if (event == object_end) keys.pop_back();
    if (event == key && !keys.back().insert(parsed.get<std::string>()).second)
      throw Error{Code::kDataLoss,
                  fmt::format("the header names {} twice", shown(parsed.get<std::string>()))};
    return true;
  };
  return Json::parse(text, judge);
}

TensorPlace read_place(const std::string& name, const Json& value, std::uint64_t data_size) {
  TensorPlace place{.name = name};
  const auto fail = [&](const std::string& why) {
    return Error{Code::kDataLoss, fmt::format("{} {}", shown(name), why)};
  };
  const auto is_control = [](unsigned char byte) { return byte < 0x20 || byte == 0x7f; };
  if (std::ranges::any_of(name, is_control)) throw fail("is an invalid name: it contains control characters");
  const auto is_count = [](const Json& number) {
    return number.is_number_unsigned() && number.get<std::uint64_t>() <= std::uint64_t{1} << 62;
  };
  const auto are_counts = [&](const Json& list) {
    return list.is_array() && std::ranges::all_of(list, is_count);
  };
  if (!value.is_object() || value.size() != 3 || !value.contains("dtype") || !value["dtype"].is_string() ||
      !value.contains("shape") || !are_counts(value["shape"]) || value["shape"].size() > kMaxDimensions ||
      !value.contains("data_offsets") || !are_counts(value["data_offsets"]) ||
      value["data_offsets"].size() != 2)
    throw fail("is not {dtype, shape, data_offsets: [begin, end]}");

  const auto& dtype = value["dtype"].get_ref<const std::string&>();
  const auto known = std::ranges::find(kDtypes, std::string_view{dtype}, &Dtype::name);
  if (known == kDtypes.end()) throw fail(fmt::format("has the unknown dtype {}", shown(dtype)));
  place.dtype = static_cast<std::size_t>(known - kDtypes.begin());

  std::uint64_t bytes = known->bytes;
  bool empty = false;
  for (const auto& size : value["shape"]) {
    const auto elements = size.get<std::uint64_t>();
    place.shape.push_back(static_cast<std::int64_t>(elements));
    empty = empty || elements == 0;  // the other dimensions must still be countable: tensors have strides
    if (__builtin_mul_overflow(bytes, std::max<std::uint64_t>(elements, 1), &bytes) ||
        bytes > kMaxTensorBytes)
      throw fail("has a shape too large to count");
  }
  if (empty) bytes = 0;
  place.begin = value["data_offsets"][0].get<std::uint64_t>();
  place.end = value["data_offsets"][1].get<std::uint64_t>();
  if (place.begin > place.end || place.end > data_size)
    throw fail(fmt::format("lies at [{}, {}) of {} bytes of data", place.begin, place.end, data_size));
  if (place.end - place.begin != bytes)
    throw fail(
        fmt::format("occupies {} bytes where its shape and dtype need {}", place.end - place.begin, bytes));
  return place;
}

/// Tensors must cover the data without overlap, gap or rest, so that nothing can hide in a file.
void check_coverage(std::vector<TensorPlace> places, std::uint64_t data_size) {
  std::ranges::sort(places, {}, [](const TensorPlace& place) { return std::pair{place.begin, place.end}; });
  std::uint64_t covered = 0;
  for (const auto& place : places) {
    if (place.begin != covered)
      throw Error{Code::kDataLoss,
                  fmt::format("{} begins at {}, {} the tensor before it, which ends at {}", shown(place.name),
                              place.begin, place.begin < covered ? "inside" : "behind", covered)};
    covered = place.end;
  }
  if (covered != data_size)
    throw Error{Code::kDataLoss,
                fmt::format("the tensors end at {} of {} bytes of data", covered, data_size)};
}

void check_bools(const TensorPlace& place, std::string_view data) {
  const auto is_bool = [](char byte) { return byte == 0 || byte == 1; };
  if (kDtypes[place.dtype].name == kBool &&
      !std::ranges::all_of(data.substr(place.begin, place.end - place.begin), is_bool))
    throw Error{Code::kDataLoss,
                fmt::format("{} holds bytes that are neither true nor false", shown(place.name))};
}

/// What another kind of file begins with, and what to do with it.
struct OtherKind {
  std::string_view beginning, advice;
};

constexpr std::string_view kPyTorch =
    "it is a PyTorch file (.pt, .pth, .bin); this makes a safetensors file of its weights: python3 -c "
    "\"import sys, "
    "torch; from safetensors.torch import save_file; w = torch.load(sys.argv[1], map_location='cpu', "
    "weights_only=True); w = w.get('model', w.get('state_dict', w)); save_file({k: t.contiguous() for k, t "
    "in "
    "w.items()}, sys.argv[2])\" OLD.pth NEW.safetensors";

// none of them is the length of a header
constexpr std::array<OtherKind, 5> kOtherKinds{
    {{"PK\x03\x04", kPyTorch},
     {"\x80\x02", kPyTorch},  // before PyTorch 1.6: a pickle
     {"version https://git-lfs.github.com/spec/",
      "it is a pointer of Git LFS, which stands for the file; fetch that with: git lfs pull"},
     {"\x89HDF\r\n\x1a\n", "it is an HDF5 file, as Keras writes them"},
     {"<", "it is a page of HTML or XML, as a download that was refused leaves"}}};

/// Empty where it is none of these.
std::string_view advice_for(std::string_view bytes) {
  const auto found = std::ranges::find_if(
      kOtherKinds, [&](const OtherKind& kind) { return bytes.starts_with(kind.beginning); });
  return found == kOtherKinds.end() ? std::string_view{} : found->advice;
}

FileLayout read_layout(std::string_view bytes) {
  std::uint64_t header_size = 0;
  if (bytes.size() < kLengthBytes) throw Error{Code::kDataLoss, "it is shorter than the length of a header"};
  std::memcpy(&header_size, bytes.data(), kLengthBytes);
  const bool is_no_length = header_size > kMaxHeaderBytes || header_size > bytes.size() - kLengthBytes;
  if (const auto advice = advice_for(bytes); is_no_length && !advice.empty())
    throw Error{Code::kDataLoss, std::string{advice}};
  if (is_no_length)
    throw Error{Code::kDataLoss,
                fmt::format("it announces a header of {} bytes in a file of {}; at most {} are read",
                            header_size, bytes.size(), kMaxHeaderBytes)};
  const Json header = parse_strictly(bytes.substr(kLengthBytes, header_size));
  if (!header.is_object()) throw Error{Code::kDataLoss, "its header is not a JSON object"};

  const std::uint64_t start = kLengthBytes + header_size;
  const auto data = bytes.substr(start);
  FileLayout layout;
  for (const auto& [name, value] : header.items()) {
    if (name == kMetadata)
      layout.metadata = value.get<std::map<std::string, std::string>>();
    else
      layout.tensors.push_back(read_place(name, value, data.size()));
  }
  check_coverage(layout.tensors, data.size());
  for (auto& place : layout.tensors) {
    check_bools(place, data);
    place.begin += start;
    place.end += start;
  }
  return layout;
}

}  // namespace

FileLayout read_layout(std::string_view bytes, const std::filesystem::path& file) {
  const auto what = file.string() + " is not a safetensors file, or is damaged: ";
  try {
    return read_layout(bytes);
  } catch (const Error& error) {
    throw Error{error.code(), what + printable_line(error.what())};
  } catch (const Json::parse_error& error) {  // its text repeats what was read, however long
    throw Error{Code::kDataLoss, fmt::format("{}header is not valid JSON at byte {}", what, error.byte)};
  } catch (const Json::out_of_range&) {
    throw Error{Code::kDataLoss, what + "its header holds a number too large to read"};
  } catch (const Json::exception& error) {
    throw Error{Code::kDataLoss, what + error.what()};
  }
}

}  // namespace abl::models::safetensors
