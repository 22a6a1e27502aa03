// SPDX-License-Identifier: Apache-2.0
#include "base/plugin_library.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <ios>
#include <stdexcept>
#include <system_error>

namespace abl {
namespace {

TEST(PluginLibraryTest, WhatTheSystemRefusedAPluginHasTheCodeOfItsNumber) {
  const auto code_of = [](const std::exception& error) {
    return refused_by_system("plugin x", error)->code();
  };
  const std::filesystem::filesystem_error away{"cannot list", "/data", {ESTALE, std::generic_category()}};
  EXPECT_EQ(code_of(away), Code::kUnknown);
  EXPECT_EQ(std::string{refused_by_system("plugin x", away)->what()}.find("plugin x: "), 0);
  EXPECT_EQ(code_of(std::system_error{EMFILE, std::system_category()}), Code::kResourceExhausted);
  EXPECT_EQ(code_of(std::system_error{ENOENT, std::generic_category()}), Code::kNotFound);
  EXPECT_FALSE(refused_by_system("plugin x", std::runtime_error{"no licence"}));
  EXPECT_FALSE(refused_by_system("plugin x", std::ios_base::failure{"a word for a number"}))
      << "what a stream could not read may be what the file holds";
}

}  // namespace
}  // namespace abl
