// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace abl {

/// What a shared library of the user's own must have to be loaded as one of a kind.
struct PluginKind {
  std::string_view
      interface;  ///< "MARK: what it is built against": as the file has it, between the mark and a zero byte
  const char* symbol;  ///< the function that offers what is in it
  const char* macro;   ///< by which people write it
};

struct PluginLibrary {
  void* function = nullptr;  ///< the address of `symbol`
  std::string sha256;
};

/// Loads a file. It stays loaded until the program ends: what it made may outlive who asked for it. Nothing
/// of it runs unless its SHA-256 is `sha256` (empty: any) and it was built against the kind's interface. Its
/// bytes are read once, so that what is judged is what runs. `what`: begins what is said of it, "plugin
/// linear". Throws: Error{kNotFound} where the file is missing, Error{kFailedPrecondition} for another
/// SHA-256 or interface, Error{kInvalidArgument} for what is no such library.
PluginLibrary load_plugin_library(const PluginKind& kind, const std::string& what,
                                  const std::filesystem::path& file, const std::string& sha256);

/// Of an exception by which a plugin says that the system refused it something (std::system_error, that of a
/// file system among them): an Error "WHAT: …", one line, with the code of its `errno`. Nothing for any other
/// exception; a stream's, which has no such number, is another.
std::optional<Error> refused_by_system(const std::string& what, const std::exception& error);

/// The environment's variable with the files of data formats of the user's own, as PATH has folders. A
/// variable and not a flag of the trainer's: whatever opens data knows them, however many programs stand
/// before it.
inline constexpr const char* kFormatsVariable = "ABLATE_FORMATS";

/// Adds files to that variable, for this program and those that it starts. Thread: before there is another.
/// Throws: Error{kNotFound} for a file that is not there, Error{kInvalidArgument} for one with ':' in its
/// path.
void add_formats(const std::vector<std::string>& files);

}  // namespace abl
