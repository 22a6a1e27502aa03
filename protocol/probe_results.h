// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/probes.h"

/// What probes found, as it travels from a run to the results file: the trainer's, and what a program of the
/// user's own found by itself, under names of its own.
namespace abl::protocol {

/// A probe with the settings that are not the usual ones: "feature-norms", "attention(images=8,joint=true)".
/// Under this key its result is kept, so that nothing found otherwise stands for it. Of a program's own probe
/// the name.
std::string probe_key(const ProbeRequest& probe);

/// A value that a probe found is a metric of its run, so that columns, tests and exports take it as any
/// other: "probe:feature-norms/last". Nothing else may have a name that begins so.
inline constexpr std::string_view kProbeMetrics = "probe:";
std::string probe_metric(std::string_view key, std::string_view value);
bool is_probe_metric(std::string_view metric);
/// What is declared of the value that such a metric has; null for others' probes and names.
const ProbeValue* value_declared(std::string_view metric);
/// The key of such a metric's probe, and the value's name.
std::string_view probe_of_metric(std::string_view metric);
std::string_view value_of_metric(std::string_view metric);

/// What is kept of one probe of a run; the rest stays in its file, and a note says so.
inline constexpr std::size_t kMostFoundBytes = 1 << 20;    ///< as JSON, without the pictures
inline constexpr std::size_t kMostPictureBytes = 2 << 20;  ///< of all its pictures together
inline constexpr std::size_t kMostPictures = 16;
inline constexpr std::size_t kMostProbes = 100;  ///< of a run, by key

/// Reads what `to_json` wrote, or a program: all but the name may be missing.
/// Throws: Error{kInvalidArgument} naming the key, and what was expected of it.
ProbeResult read_probe_result(const nlohmann::json& written);
/// The same of a text, which may have bare numbers that are not finite. Throws: also for what is no JSON, or
/// is nested too deep.
ProbeResult read_probe_result_text(std::string_view text);
/// Throws: Error{kInvalidArgument} for what cannot be the name of a probe, a value, an array or a picture,
/// and part of the name of a file. `key`: for the message.
void expect_probe_name(const std::string& name, const std::string& key);

/// For people: values, arrays of one or two dimensions, and what there is beside. Lines with their ends.
std::string to_text(const ProbeResult& result);

/// The bytes of the pictures, in their order, of which size and digest are noted. `read` gives a file's
/// content, of at most so many bytes, or throws Error. One that cannot be had, or is no PNG, is left out, and
/// a note says why; one that was not written is left out.
std::vector<std::string> take_pictures(
    ProbeResult& result, const std::function<std::string(const std::string& file, std::size_t most)>& read);

/// The size of a PNG, by its first chunk; nothing of bytes that are none.
struct PngSize {
  int width = 0, height = 0;
};
std::optional<PngSize> png_size(std::string_view bytes);

/// Leaves arrays out, the largest first, until what was found has at most `kMostFoundBytes` as JSON; a note
/// says which. Throws: Error{kInvalidArgument} where the rest alone has more.
void bound(ProbeResult& result);

}  // namespace abl::protocol
