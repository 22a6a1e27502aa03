// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>

#include "base/clock.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/shown.h"
#include "cli/words.h"
#include "printing/grid.h"

namespace abl::cli {
namespace {

Run declare_audit(CLI::App& app, Context& context) {
  auto most = std::make_shared<unsigned>(100);
  app.add_option("--most", *most, "So many lines, the newest")
      ->check(whole_number(1, 10000))
      ->type_name("N")
      ->capture_default_str();
  add_scheduler(app, context);
  return [&context, most]() -> int {
    ablate::v1::ListAuditRequest request;
    request.set_most(*most);
    Client client{context};
    const auto list = client.call(&ablate::v1::Access::Stub::ListAudit, request);
    if (context.json) {
      context.print_json(list);
      return kExitOk;
    }
    if (list.lines().empty()) {
      context.out.line("nobody has changed anything yet");
      return kExitOk;
    }
    printing::Grid grid{{{"when"}, {"who"}, {"token"}, {"what"}, {"on what"}, {"outcome"}}};
    const auto printable_list = shown(list, context.out);
    for (const auto& line : printable_list.lines())
      grid.add(
          {date_text(line.time()), line.who(), line.token(), line.what(), line.target(), line.outcome()});
    context.out.write(grid.text(&context.out));
    return kExitOk;
  };
}

}  // namespace

extern const Command kAuditCommand{
    .place = 176,
    .name = "audit",
    .summary = "Who has changed what",
    .example = "ablate audit --most 20",
    .declare = declare_audit,
};

}  // namespace abl::cli
