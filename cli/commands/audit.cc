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
  struct Flags {
    unsigned most = 100;
    std::string who, what;
  };
  auto flags = std::make_shared<Flags>();
  app.add_option("--most", flags->most, "So many lines, the newest")
      ->check(whole_number(1, 10000))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--who", flags->who, "Only lines of this person")->type_name("NAME");
  app.add_option("--what", flags->what, "Only lines of this request, such as CancelSweep")
      ->type_name("REQUEST");
  add_scheduler(app, context);
  return [&context, flags]() -> int {
    ablate::v1::ListAuditRequest request;
    request.set_most(flags->most);
    request.set_who(flags->who);
    request.set_what(flags->what);
    Client client{context};
    const auto list = client.call(&ablate::v1::Access::Stub::ListAudit, request);
    if (context.json) {
      context.print_json(list);
      return kExitOk;
    }
    if (list.lines().empty()) {
      context.out.line(flags->who.empty() && flags->what.empty() ? "nobody has changed anything yet"
                                                                 : "no line of the audit matches");
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
    .example = "ablate audit --most 20\nablate audit --who ada --what CancelSweep",
    .declare = declare_audit,
};

}  // namespace abl::cli
