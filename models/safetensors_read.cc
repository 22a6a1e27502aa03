// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "models/safetensors.h"
#include "models/safetensors_format.h"

namespace abl::models {
namespace {

using Json = nlohmann::json;
using namespace safetensors;

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

/// A whole file in memory, copied page by page when written to.
class Mapping {
 public:
  explicit Mapping(const std::filesystem::path& file) {
    const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe must not wait
    if (descriptor < 0) throw system_error("cannot read " + file.string(), errno);
    struct stat status {};
    const bool regular = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
    size_ = static_cast<std::uint64_t>(status.st_size);
    void* start = nullptr;  // stays so for an empty file, which cannot be mapped
    if (regular && size_ > 0)
      start = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, descriptor, 0);
    const int why = errno;
    ::close(descriptor);
    if (!regular) throw Error{Code::kInvalidArgument, file.string() + " is not a regular file"};
    if (start == MAP_FAILED) throw system_error("cannot map " + file.string(), why);
    start_ = static_cast<char*>(start);
  }
  ~Mapping() {
    if (start_ != nullptr) ::munmap(start_, size_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  char* start() const { return start_; }
  std::uint64_t size() const { return size_; }

 private:
  char* start_ = nullptr;
  std::uint64_t size_ = 0;
};

/// One tensor as the header describes it.
struct Entry {
  std::string name;
  torch::ScalarType type = torch::kFloat;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;
};

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

Entry read_entry(const std::string& name, const Json& value, std::uint64_t data_size) {
  Entry entry{.name = name};
  const auto fail = [&](const std::string& why) {
    return Error{Code::kDataLoss, fmt::format("{} {}", shown(name), why)};
  };
  const auto is_control = [](unsigned char byte) { return byte < 0x20 || byte == 0x7f; };
  if (std::ranges::any_of(name, is_control)) throw fail("is no name: it holds control characters");
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
  entry.type = known->type;

  std::uint64_t bytes = torch::elementSize(entry.type);
  bool empty = false;
  for (const auto& size : value["shape"]) {
    const auto elements = size.get<std::uint64_t>();
    entry.shape.push_back(static_cast<std::int64_t>(elements));
    empty = empty || elements == 0;  // the other dimensions must still be countable: tensors have strides
    if (__builtin_mul_overflow(bytes, std::max<std::uint64_t>(elements, 1), &bytes) ||
        bytes > kMaxTensorBytes)
      throw fail("has a shape too large to count");
  }
  if (empty) bytes = 0;
  entry.begin = value["data_offsets"][0].get<std::uint64_t>();
  entry.end = value["data_offsets"][1].get<std::uint64_t>();
  if (entry.begin > entry.end || entry.end > data_size)
    throw fail(fmt::format("lies at [{}, {}) of {} bytes of data", entry.begin, entry.end, data_size));
  if (entry.end - entry.begin != bytes)
    throw fail(
        fmt::format("occupies {} bytes where its shape and dtype need {}", entry.end - entry.begin, bytes));
  return entry;
}

/// Tensors must cover the data without overlap, gap or rest, so that nothing can hide in a file.
void check_coverage(std::vector<Entry> entries, std::uint64_t data_size) {
  std::ranges::sort(entries, {}, [](const Entry& entry) { return std::pair{entry.begin, entry.end}; });
  std::uint64_t covered = 0;
  for (const auto& entry : entries) {
    if (entry.begin != covered)
      throw Error{Code::kDataLoss,
                  fmt::format("{} begins at {}, {} the tensor before it, which ends at {}", shown(entry.name),
                              entry.begin, entry.begin < covered ? "inside" : "behind", covered)};
    covered = entry.end;
  }
  if (covered != data_size)
    throw Error{Code::kDataLoss,
                fmt::format("the tensors end at {} of {} bytes of data", covered, data_size)};
}

torch::Tensor view_of(const Entry& entry, const std::shared_ptr<const Mapping>& mapping, std::uint64_t data) {
  const auto options = torch::dtype(entry.type);
  if (entry.begin == entry.end) return torch::empty(entry.shape, options);
  char* start = mapping->start() + data + entry.begin;
  const auto is_truth = [](char byte) { return byte == 0 || byte == 1; };
  if (entry.type == torch::kBool && !std::all_of(start, start + (entry.end - entry.begin), is_truth))
    throw Error{Code::kDataLoss,
                fmt::format("{} holds bytes that are neither true nor false", shown(entry.name))};
  if (reinterpret_cast<std::uintptr_t>(start) % torch::elementSize(entry.type) == 0)
    return torch::from_blob(
        start, entry.shape, [mapping](void*) {}, options);
  auto copy = torch::empty(entry.shape, options);  // a header of odd length puts the data at an odd address
  std::memcpy(copy.data_ptr(), start, entry.end - entry.begin);
  return copy;
}

TensorFile read_mapped(const std::shared_ptr<const Mapping>& mapping) {
  std::uint64_t header_size = 0;
  if (mapping->size() < kLengthBytes)
    throw Error{Code::kDataLoss, "it is shorter than the length of a header"};
  std::memcpy(&header_size, mapping->start(), kLengthBytes);
  if (header_size > kMaxHeaderBytes || header_size > mapping->size() - kLengthBytes)
    throw Error{Code::kDataLoss,
                fmt::format("it announces a header of {} bytes in a file of {}; at most {} are read",
                            header_size, mapping->size(), kMaxHeaderBytes)};
  const Json header = parse_strictly({mapping->start() + kLengthBytes, header_size});
  if (!header.is_object()) throw Error{Code::kDataLoss, "its header is not a JSON object"};

  const std::uint64_t data = kLengthBytes + header_size;
  TensorFile content;
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name == kMetadata)
      content.metadata = value.get<std::map<std::string, std::string>>();
    else
      entries.push_back(read_entry(name, value, mapping->size() - data));
  }
  check_coverage(entries, mapping->size() - data);
  for (const auto& entry : entries) content.tensors.emplace(entry.name, view_of(entry, mapping, data));
  return content;
}

}  // namespace

TensorFile read_safetensors(const std::filesystem::path& file) {
  const auto mapping = std::make_shared<const Mapping>(file);
  const auto what = file.string() + " is not a safetensors file, or is damaged: ";
  try {
    return read_mapped(mapping);
  } catch (const Error& error) {
    throw Error{error.code(), what + error.what()};
  } catch (const Json::parse_error& error) {  // its text repeats what was read, however long
    throw Error{Code::kDataLoss, fmt::format("{}its header is no JSON from byte {} on", what, error.byte)};
  } catch (const Json::out_of_range&) {
    throw Error{Code::kDataLoss, what + "its header holds a number too large to read"};
  } catch (const Json::exception& error) {
    throw Error{Code::kDataLoss, what + error.what()};
  }
}

}  // namespace abl::models
