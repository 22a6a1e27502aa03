// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "ablate/v1/sweeps.pb.h"
#include "cli/command.h"
#include "cli/context.h"

/// Sweep files checked, planned and submitted. The scheduler checks and plans where one answers; otherwise
/// this program does, by the same library and with the results file, if there is one, read-only; stderr says
/// so.
namespace abl::cli {

/// `written`: a file, "-" for standard input, or a table of a paper ("msf/table-1"). Behind its text stand
/// the scale and the texts of other sweeps that its rows name, so that it says itself what it runs. `scale`:
/// that of scales.yaml, which lies beside the file; "full", or nothing: the file as it is. `seeds`: so many
/// in place of those that it has; 0: as it says. Throws: Error naming the file that cannot be read, or the
/// nearest table; Error{kNotFound} with the nearest scale, or where none lie there; SweepFileError at a row
/// that names another sweep which is not there.
ablate::v1::SweepFile read_sweep_file(const std::filesystem::path& written, const std::string& scale = {},
                                      int seeds = 0);

/// `--scale NAME`.
void add_scale(CLI::App& app, std::string& scale);

/// Problems are part of the answer; that a file cannot be read is one.
ablate::v1::ValidateResponse validate(const Context& context, const std::filesystem::path& file,
                                      const std::string& scale = {});

/// Throws: Error{kInvalidArgument} with a line for each problem of the file.
/// `fresh`: calibrations made just now, which the scheduler keeps; without one they are for this plan alone.
ablate::v1::SweepPlan plan(const Context& context, const ablate::v1::SweepFile& file,
                           const std::vector<ablate::v1::Calibration>& fresh = {});

/// `plan --measure`: how, and with what of this machine.
struct MeasureFlags {
  bool measure = false;
  double seconds = 20;
  int threads = 0;                ///< 0: of a connected worker's slot, otherwise as many as one would have
  std::string device;             ///< empty: likewise
  std::vector<std::string> data;  ///< "NAME=FOLDER"

  void declare(CLI::App& app);
};

/// Times some steps of the trials of a sweep, here, for about `flags.seconds`; says on stderr what it does.
/// What cannot be measured is left out, with a note.
/// Throws: Error{kNotFound} where there is no trainer, or a folder is not there; what `planning::parse`
/// throws.
std::vector<ablate::v1::Calibration> measure(Context& context, const ablate::v1::SweepFile& file,
                                             const MeasureFlags& flags);

/// Stores the sweep: only a scheduler does. Where the request says nothing of where the file comes from, that
/// is looked up (cli/provenance.h). Throws: as `plan`.
ablate::v1::SubmitResponse submit(const Context& context, const ablate::v1::SubmitRequest& request);

/// Who runs this program; empty where neither the environment nor the system says.
std::string user_name();

/// "sweep.yaml:14:12: rows.a: message; did you mean 'b'?".
std::string problem_text(const ablate::v1::Problem& problem);

}  // namespace abl::cli
