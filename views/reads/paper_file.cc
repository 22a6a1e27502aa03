// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ablate/v1/pages.pb.h"
#include "sweeps/paper_sweeps.h"
#include "sweeps/whole_file.h"
#include "views/read.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;

/// The file as `ablate submit PAPER/TABLE --scale SCALE` reads it. The names are looked up among those that
/// there are: what comes over the network is never part of a path.
v1::PaperFile paper_file(const std::string& paper, const std::string& table, const std::string& scale) {
  const auto tables = sweeps::paper_sweeps(paper);
  const auto known = std::ranges::find(tables, table, &sweeps::PaperSweep::table);
  const auto file = (known == tables.end() ? sweeps::paper_sweep(paper + "/" + table) : *known).file;
  auto read = sweeps::read_whole(file, scale);
  v1::PaperFile message;
  for (auto& name : sweeps::scales_of(file)) message.add_scales(std::move(name));
  message.mutable_file()->set_path(std::move(read.path));
  message.mutable_file()->set_folder(std::move(read.folder));
  message.mutable_file()->set_text(std::move(read.text));
  return message;
}

constexpr Parameter kPaperOfPath{.name = "paper", .about = "The paper, as `papers` names it", .needed = true};

}  // namespace

extern const Read kPaperFileRead{
    .path = "papers/*",
    .of = &kPaperOfPath,
    .about = "The sweep file of a paper's table, as it is or at a scale, to be planned and submitted",
    .parameters = {{.name = "table", .about = "The table, as `papers` names it", .needed = true},
                   {.name = "scale", .about = "One of its `scales`; without it, or `full`: the paper's own"}},
    .message = v1::PaperFile::descriptor,
    .answer =
        [](const Query& query, const Stored&) {
          return to_json(paper_file(query.name, query.text("table"), query.text("scale")));
        },
};

}  // namespace abl::views
