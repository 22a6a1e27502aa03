// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "data/pack_format.h"
#include "tests/fuzz/target.h"

namespace abl::fuzz {
namespace {

void read_file(std::string_view bytes) {
  const std::vector<char> exact{bytes.begin(), bytes.end()};  // no room behind its end
  const std::string_view file{exact.data(), exact.size()};
  try {
    const data::PackIndex index = data::decode_pack(file);
    for (const auto* split : {&index.train, &index.val})
      for (const auto& entry : *split) {
        require(entry.offset <= file.size() && entry.length <= file.size() - entry.offset,
                "an image lies in its file");
        require(entry.truths <= file.size() - entry.offset - entry.length, "so does what is known of it");
        require(index.annotated
                    ? entry.label == 0 && entry.truths > 0
                    : entry.label >= 0 && static_cast<std::size_t>(entry.label) < index.classes.size(),
                "an image has a class, or truths");
      }
    (void)index.fingerprint();
  } catch (const Error& error) {
    require(error.code() == Code::kDataLoss, "a damaged file is damaged");
    require_printable(error.what());
  }
}

}  // namespace

/// The bytes as a file, and behind a header that fits them, whose digest no guess would find: the first byte
/// says how many of the last are notes.
void read_packed_file(std::string_view bytes) {
  constexpr std::size_t kImages = 64;
  read_file(bytes);
  if (bytes.empty()) return;
  const std::string_view content = bytes.substr(1);
  const std::size_t notes = std::min<std::size_t>(static_cast<unsigned char>(bytes.front()), content.size());
  const std::string_view index = content.substr(0, content.size() - notes);
  const std::size_t payload =
      (data::kPackHeader + content.size() + data::kPackPage - 1) / data::kPackPage * data::kPackPage;
  for (const auto version : {data::kPackVersion, data::kAnnotatedPackVersion}) {
    std::string file =
        data::encode_header(index, content.substr(index.size()), payload, payload + kImages, version);
    file += content;
    file.resize(payload, '\0');
    file.resize(payload + kImages, '\x7f');
    read_file(file);
  }
}

}  // namespace abl::fuzz
