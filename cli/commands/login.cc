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
#include "cli/logins.h"
#include "cli/words.h"

namespace abl::cli {
namespace {

/// "https://gpu-head:7071/" -> "gpu-head:7071".
std::string address_of(const std::string& given) {
  const auto refuse = [](const std::string& why) {
    throw Error{Code::kInvalidArgument, why + "; expected https://HOST:PORT or HOST:PORT"};
  };
  std::string address = given;
  if (const auto scheme = address.find("://"); scheme != std::string::npos) {
    if (address.substr(0, scheme) != "https")
      refuse(fmt::format("'{}' is not read: a token goes over TLS alone", given));
    address.erase(0, scheme + 3);
  }
  if (address.find('@') != std::string::npos) refuse("a URL with a user or a token in it is not read");
  while (address.ends_with('/')) address.pop_back();
  const auto colon = address.rfind(':');
  const bool has_port = colon != std::string::npos && colon > 0 && colon + 1 < address.size() &&
                        address.find_first_not_of("0123456789", colon + 1) == std::string::npos;
  if (!has_port || address.starts_with("unix:") || address.find('/') != std::string::npos)
    refuse(fmt::format("invalid address '{}'", given));
  return address;
}

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
  };
  auto flags = std::make_shared<Flags>();
  app.add_option("URL", flags->address, "The scheduler: https://HOST:PORT")->required()->type_name("");
  app.add_option("--ca", flags->ca,
                 "The fleet's authority, ca.crt of 'ablate init-fleet' [those that this machine knows]")
      ->type_name("FILE");
  add_json(app, context);
  return [&context, flags]() -> int {
    const std::string address = address_of(flags->address);
    access::ClientAccess login{.tls = true};
    if (!flags->ca.empty()) login.authorities = access::read_authorities(flags->ca);
    login.token = ask_for_token(context).text();
    Client client{address, login};
    const auto caller = client.call(&ablate::v1::Access::Stub::WhoAmI, ablate::v1::WhoAmIRequest{});
    keep_login(address, login);
    const std::string role = role_text(caller.role());
    if (context.json)
      context.out.line(nlohmann::ordered_json{
          {"scheduler", address}, {"name", caller.name()}, {"role", role}, {"file", logins_file().string()}}
                           .dump());
    else
      context.out.line(fmt::format("logged in at {} as {} ({}): 'ablate ls --scheduler {}'", address,
                                   caller.name(), role, address));
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
