// SPDX-License-Identifier: Apache-2.0
#include "launchers/shell_script.h"

#include "base/error.h"

namespace abl::launchers {

std::string shell_word(std::string_view text) {
  std::string word = "'";
  for (const char letter : text) {
    if (letter == '\0') throw Error{Code::kInvalidArgument, "a zero byte in a word for a shell"};
    if (letter == '\'')
      word += "'\\''";
    else
      word += letter;
  }
  return word + "'";
}

std::string script_with(std::string_view script, const std::vector<std::string>& words) {
  std::string text = "{\nset --";
  for (const std::string& word : words) text += " " + shell_word(word);
  return text + "\nrun() {\n" + std::string{script} + "}\nrun \"$@\"\n}\n";
}

}  // namespace abl::launchers
