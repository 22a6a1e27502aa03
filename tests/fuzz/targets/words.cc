// SPDX-License-Identifier: Apache-2.0
#include "access/listen_address.h"
#include "access/token.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/nearest_name.h"
#include "base/pattern.h"
#include "base/placeholders.h"
#include "protocol/checkpoint_files.h"
#include "protocol/expression.h"
#include "tests/fuzz/target.h"

namespace abl::fuzz {
namespace {

/// What is said of something that is no token.
std::string said_of(const std::string& text) {
  try {
    (void)access::Token::parse(text);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

void read_token(const std::string& text) {
  try {
    const auto token = access::Token::parse(text);
    require(access::Token::parse(token.text()).digest() == token.digest(), "a token reads as itself");
  } catch (const Error& error) {
    require(error.code() == Code::kUnauthenticated, "what is no token lets nobody in");
    require_printable(error.what());
    require(text.size() < 16 || std::string_view{error.what()}.find(text) == std::string_view::npos ||
                said_of("x").find(text) != std::string::npos,  // a piece of the sentence itself
            "what is said of a token has nothing of it");
  }
}

void read_address(const std::string& text) {
  for (const auto reach : {access::Reach::kThisMachine, access::Reach::kNetwork}) try {
      const auto address = access::parse_listen_address(text, reach);
      require(
          !address.socket.empty() || access::is_ip_address(address.host) || access::is_loopback(address.host),
          "an address is a socket's or a machine's");
      require(
          reach == access::Reach::kNetwork || !address.socket.empty() || access::is_loopback(address.host),
          "what only this machine may reach is reached by no other");
    } catch (const Error& error) {
      require(error.code() == Code::kInvalidArgument, "a wrong address is bad input");
      require_printable(error.what());
    }
}

void read_expression(const std::string& text) {
  try {
    const protocol::Expression expression{text};
    for (const auto& name : expression.names())
      require(name.place < text.size(), "a name stands in the text");
  } catch (const protocol::ExpressionError& error) {
    require(error.place <= text.size(), "a mistake stands in the text");
    require_printable(error.what());
  }
}

}  // namespace

/// The small languages: what stands in a flag, a field or a file name.
void read_words(std::string_view bytes) {
  const std::string text{bytes};
  read_token(text);
  read_address(text);
  read_expression(text);
  if (const auto time = parse_duration(text)) require(time->count() >= 0, "a duration is not negative");
  if (const auto step = protocol::step_of_checkpoint(text))
    require(protocol::checkpoint_name(*step) == text, "a checkpoint has one name");
  const Pattern pattern{text};
  if (pattern.problem().empty()) (void)pattern.is_in("epoch 3: loss=0.1 acc=75.2\nCUDA out of memory\n");
  (void)nearest_name(text, {"submit", "status", "table"});
  const auto names = placeholders(text);
  std::size_t filled = 0;
  (void)fill_placeholders(text, [&](const std::string& name) {
    require(filled < names.size() && names[filled++] == name, "the places are filled in their order");
    return std::string{"{x}"};
  });
  require(filled == names.size(), "every place is filled");
  (void)other_braces(text);
  (void)shell_variables(text);
}

}  // namespace abl::fuzz
