// SPDX-License-Identifier: Apache-2.0
#include "cli/context.h"

#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/file_lock.h"
#include "base/printable.h"
#include "views/json.h"

namespace abl::cli {

std::filesystem::path Context::home() const {
  return std::filesystem::absolute(home_flag.empty() ? home_folder() : std::filesystem::path{home_flag})
      .lexically_normal();
}
std::filesystem::path Context::socket() const { return home() / "run" / "scheduler.sock"; }
std::filesystem::path Context::default_store() const { return home() / "results.db"; }
std::filesystem::path Context::store() const {
  return store_flag.empty() ? default_store() : std::filesystem::absolute(store_flag);
}
std::filesystem::path Context::up_file() const { return home() / "run" / "up.json"; }

std::filesystem::path Context::up_lock() const { return home() / "run" / "up.lock"; }

std::string Context::scheduler() const {
  if (!scheduler_flag.empty()) return scheduler_flag;
  const char* address = std::getenv("ABLATE_SCHEDULER");
  if (home_flag.empty() && address && *address) return address;
  return "unix:" + socket().string();
}

void Context::print_json(const google::protobuf::Message& message) const {
  const bool pretty = out.interactive();
  views::write_json(message, pretty, [this](std::string_view piece) { out.write(piece); });
  if (!pretty) out.line("");
}

void Context::confirm(const std::string& question, bool yes) const {
  if (yes) return;
  if (isatty(STDIN_FILENO) != 1 || !err.interactive())
    throw Error{Code::kInvalidArgument, question + " Nobody can be asked here: pass --yes"};
  err.write(printable(question) + " [y/N] ");
  std::string answer;
  std::getline(std::cin, answer);
  if (answer != "y" && answer != "Y" && answer != "yes") throw Error{Code::kCancelled, "nothing was changed"};
}

void Context::note(const std::string& text) const {
  if (text != last_note)
    err.line(err.paint(Style::kDim, "note: " + (err.interactive() ? printable(text) : text)));
  last_note = text;
}

std::optional<UpRecord> running_up(const Context& context) {
  std::error_code absent;
  if (!FileLock::is_held(context.up_lock()) || !std::filesystem::exists(context.up_file(), absent))
    return std::nullopt;
  const auto json = nlohmann::json::parse(read_file(context.up_file()), nullptr, false);
  if (!json.is_object()) return std::nullopt;
  return UpRecord{.pid = json.value("pid", 0),
                  .url = json.value("url", ""),
                  .store = json.value("store", ""),
                  .socket = json.value("socket", "")};
}

std::string to_json(const UpRecord& record) {
  return nlohmann::ordered_json{
      {"pid", record.pid}, {"url", record.url}, {"store", record.store}, {"socket", record.socket}}
      .dump();
}

void write_up_record(const Context& context, const UpRecord& record) {
  write_file_atomically(context.up_file(), to_json(record) + "\n");
}

}  // namespace abl::cli
