// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "access/token.h"
#include "base/error.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/dashboard_link.h"
#include "cli/logins.h"
#include "cli/words.h"

namespace abl::cli {
namespace {

/// Nothing that is typed shows on the terminal while this lives. Ctrl-C waits until it shows again.
class WithoutEcho {
 public:
  WithoutEcho() : is_terminal_{::tcgetattr(STDIN_FILENO, &before_) == 0} {
    ::sigemptyset(&stops_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::sigaddset(&stops_, signal);
    ::pthread_sigmask(SIG_BLOCK, &stops_, &mask_before_);
    termios hidden = before_;
    hidden.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    if (is_terminal_) ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden);
  }
  ~WithoutEcho() {
    if (is_terminal_) ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
    ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  }
  WithoutEcho(const WithoutEcho&) = delete;
  WithoutEcho& operator=(const WithoutEcho&) = delete;

  /// Returns: whether there is a line, and not an order to stop.
  bool wait_for_line() const {
    pollfd typed{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    while (::poll(&typed, 1, 100) == 0) {
      sigset_t pending;
      ::sigpending(&pending);
      for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
        if (::sigismember(&pending, signal) == 1) return false;
    }
    return true;
  }

 private:
  termios before_{};
  sigset_t stops_{}, mask_before_{};
  const bool is_terminal_;
};

access::Token ask_for_token(const Context& context) {
  std::string line;
  if (isatty(STDIN_FILENO) == 1) {
    context.err.write("Token: ");
    {
      const WithoutEcho hidden;
      if (hidden.wait_for_line()) std::getline(std::cin, line);
    }
    context.err.line("");
  } else {
    std::getline(std::cin, line);
  }
  return access::Token::parse(line);
}

Run declare_login(CLI::App& app, Context& context) {
  struct Flags {
    std::string address, ca;
    access::TlsFiles own;
  };
  auto flags = std::make_shared<Flags>();
  app.add_option("URL", flags->address, "The scheduler: https://HOST:PORT")->required()->type_name("");
  app.add_option("--ca", flags->ca,
                 "The fleet's authority, ca.crt of 'ablate init-fleet' [those that this machine knows]")
      ->type_name("FILE");
  app.add_option(
         "--certificate", flags->own.certificate,
         "Your certificate (PEM), where the scheduler asks for one: 'ablate init-fleet --client NAME' "
         "makes it; where it lies is kept")
      ->type_name("FILE");
  app.add_option("--key", flags->own.key, "Its key, which nobody else may read")->type_name("FILE");
  add_json(app, context);
  return [&context, flags]() -> int {
    const std::string address = login_address(flags->address);
    access::ClientAccess login{.tls = true, .own = flags->own};
    if (login.own.given()) access::read_client_pem(login.own, SystemClock{}.now());
    if (!flags->ca.empty()) login.authorities = access::read_authorities(flags->ca);
    login.token = ask_for_token(context).text();
    Client client{address, login};
    const auto caller = client.call(&ablate::v1::Access::Stub::WhoAmI, ablate::v1::WhoAmIRequest{});
    keep_login(address, login);
    const std::string role = role_text(caller.role());
    const std::string dashboard = dashboard_at(address, caller.dashboard());
    if (context.json) {
      nlohmann::ordered_json json{
          {"scheduler", address}, {"name", caller.name()}, {"role", role}, {"file", logins_file().string()}};
      if (!dashboard.empty()) json["dashboard"] = dashboard;
      context.out.line(json.dump());
      return kExitOk;
    }
    context.out.line(fmt::format("logged in at {} as {} ({}): 'ablate ls --scheduler {}'", address,
                                 caller.name(), role, address));
    if (!dashboard.empty())
      context.out.line(fmt::format("dashboard: {} (sign in with the same token)", dashboard));
    else if (!caller.dashboard().empty())
      context.out.line(fmt::format(
          "dashboard: {} on the scheduler's machine alone; from here through 'ssh -L'", caller.dashboard()));
    return kExitOk;
  };
}

}  // namespace

extern const Command kLoginCommand{
    .place = 172,
    .name = "login",
    .summary = "Keep a token for a scheduler on another machine",
    .example =
        "ablate login https://gpu-head:7071 --ca ca.crt < my.token\n"
        "export ABLATE_SCHEDULER=gpu-head:7071",
    .success = "the token is good, and kept",
    .declare = declare_login,
};

}  // namespace abl::cli
