// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sweeps/chains.h"
#include "sweeps/sweep_spec.h"
#include "sweeps/yaml_reader.h"

/// Rows of other sweep files: `from: {sweep: msf/table-6, row: vit-s-orig}`.
namespace abl::sweeps {

/// The rows of other files whose weights the rows of one file take, each resolved as its own file has it.
class OtherSweeps {
 public:
  /// `sources`: the section of the file that has the others' texts, or null. It outlives this.
  explicit OtherSweeps(const Node* sources);
  ~OtherSweeps();

  /// The row that a row of file `in` names, with all whose weights it takes itself. `in`: "" for the file
  /// itself, otherwise a key of `sources`.
  /// Returns: its index in `rows`; nothing where it cannot be had, which is a problem then.
  std::optional<std::size_t> find(const DraftSource& source, const std::string& in, Problems& problems);

  /// Every row that was found or is behind one. Their `sources` count here.
  const std::vector<Row>& rows() const { return rows_; }

 private:
  struct File;
  File* file(const std::string& key);
  void resolve(File& file, std::size_t row);

  std::map<std::string, const Node*> texts_;
  std::map<std::string, std::unique_ptr<File>> files_;
  std::map<std::pair<std::string, std::string>, std::size_t> found_;  // file and row -> index in rows_
  std::vector<std::pair<std::string, std::string>> begun_;            // those that are being resolved
  std::vector<Row> rows_;
};

/// What `sweep: NAME` means in the file `in`: a path is one from that file's folder, anything else a name as
/// it stands.
std::string key_of_sweep(const std::string& in, const std::string& written);

/// A sweep file's text with a section `sources:` behind it: the texts of all files whose rows its rows name,
/// and those of the files that these name, so that what is submitted and stored says itself what it starts
/// from. Lines of the file keep their numbers. A file that names none stays as it is.
///   `read`: the text of another file, by its key; `scaled`: at the scale that the text has, but for one that
///           this scale itself names
/// Throws: SweepFileError at the row that names a file which `read` throws for, or where the file is no YAML.
std::string with_sources(const std::string& text, const std::string& file,
                         const std::function<std::string(const std::string& key, bool scaled)>& read);

}  // namespace abl::sweeps
