// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace abl {

/// A flag that may be given several times, as NAME=PATH: what a trial knows by a name lies there on this
/// machine.
struct NamedPathFlag {
  const char* flag;      ///< "--weights"
  const char* kind;      ///< what lies at the path: "file"
  const char* expected;  ///< "NAME=FILE, such as …"
};
inline constexpr NamedPathFlag kDataFlag{"--data", "folder or packed file",
                                         "NAME=FOLDER, such as cifar10=/data/cifar10"};
inline constexpr NamedPathFlag kWeightsFlag{
    "--weights", "file", "NAME=FILE, such as regnety_160=/weights/regnety_160.safetensors"};

inline constexpr NamedPathFlag kPluginFlag{
    "--plugin", "file", "NAME=FILE, such as linear-attention=/plugins/linear_attention.so"};

/// What a trial takes from its worker by name is weights, or a plugin: that has "plugin:" before its name,
/// which no name of weights has.
inline constexpr std::string_view kPluginPrefix = "plugin:";
std::string plugin_key(std::string_view name);  ///< "linear" -> "plugin:linear"
bool is_plugin(std::string_view key);
std::string_view kind_of_file(std::string_view key);  ///< "plugin" or "weights"
std::string_view name_of_file(std::string_view key);  ///< "linear" of "plugin:linear"
/// "--plugin linear=FILE", "--weights deit=FILE": how a worker gets it.
std::string flag_of_file(std::string_view key);

using NamedPaths = std::map<std::string, std::filesystem::path>;

/// The paths as they were given.
/// Throws: Error{kInvalidArgument} naming the flag, for what is not NAME=PATH and for a name that is given
/// twice.
NamedPaths parse_named_paths(const NamedPathFlag& flag, const std::vector<std::string>& given);

/// Throws: Error{kNotFound} naming the flag and the first path that is not there.
void expect_there(const NamedPathFlag& flag, const NamedPaths& paths);

}  // namespace abl
