// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "cli/command.h"
#include "config/document/reference.h"
#include "sweeps/form.h"

namespace abl::cli {
namespace {

const std::vector<std::string> kSchemas{"sweep", "scales", "config"};

nlohmann::json schema_of(const std::string& what) {
  if (what == "scales") return sweeps::scales_schema();
  if (what == "config") return config::json_schema();
  return sweeps::sweep_schema();
}

Run declare_schema(CLI::App& app, Context& context) {
  auto what = std::make_shared<std::string>(kSchemas.front());
  auto output = std::make_shared<std::string>();
  add_choice(app, "WHAT", *what, kSchemas,
             "What it describes: a sweep file, a paper's scales.yaml, or one trial's configuration [sweep]");
  app.add_option("-o,--output", *output, "Write it to this file [standard output]")->type_name("FILE");
  add_json(app, context);
  return [&context, what, output]() -> int {
    const bool on_one_line = context.json && output->empty();
    const std::string text = schema_of(*what).dump(on_one_line ? -1 : 1) + "\n";
    if (output->empty())
      context.out.write(text);
    else
      write_file_atomically(*output, text);
    return kExitOk;
  };
}

}  // namespace

extern const Command kSchemaCommand{
    .place = 35,
    .name = "schema",
    .summary = "Print the JSON Schema of a sweep file, by which editors complete and check",
    .example =
        "ablate schema -o sweep.schema.json\n"
        "sed -i '1i # yaml-language-server: $schema=sweep.schema.json' my-sweep.yaml",
    .declare = declare_schema,
};

}  // namespace abl::cli
