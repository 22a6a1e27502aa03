// SPDX-License-Identifier: Apache-2.0
#include "base/named_path.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"

namespace abl {
namespace {

/// What an Error says, or empty.
std::string said_by(const std::function<void()>& work, Code code) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    return error.what();
  }
  return {};
}

TEST(NamedPath, ReadsNamesAndPathsAsGiven) {
  EXPECT_EQ(parse_named_paths(kDataFlag, {"a=rel/x", "b=/y=z"}), (NamedPaths{{"a", "rel/x"}, {"b", "/y=z"}}));
}

TEST(NamedPath, SaysWhatWasExpected) {
  for (const std::string text : {"cifar10", "=/data", "cifar10="})
    EXPECT_EQ(said_by([&] { parse_named_paths(kDataFlag, {text}); }, Code::kInvalidArgument),
              "--data " + text + ": expected NAME=FOLDER, such as cifar10=/data/cifar10");
  EXPECT_EQ(said_by(
                [] {
                  parse_named_paths(kWeightsFlag, {"a=1", "b=1", "a=2"});
                },
                Code::kInvalidArgument),
            "--weights a=2: duplicate name");
}

TEST(NamedPath, APluginAndWeightsOfOneNameAreTwoFiles) {
  EXPECT_EQ(plugin_key("mine"), "plugin:mine");
  EXPECT_TRUE(is_plugin("plugin:mine"));
  EXPECT_FALSE(is_plugin("mine"));
  EXPECT_EQ(flag_of_file("plugin:mine"), "--plugin mine=FILE");
  EXPECT_EQ(flag_of_file("mine"), "--weights mine=FILE");
  EXPECT_EQ(kind_of_file("plugin:mine"), "plugin");
  EXPECT_EQ(name_of_file("plugin:mine"), "mine");
}

TEST(NamedPath, NamesThePathThatIsNotThere) {
  EXPECT_EQ(said_by([] { expect_there(kDataFlag, {{"here", "/"}}); }, Code::kNotFound), "");
  EXPECT_EQ(said_by(
                [] {
                  expect_there(kDataFlag, {{"here", "/"}, {"set", "/absent"}});
                },
                Code::kNotFound),
            "--data: no folder or packed file /absent for set");
}

}  // namespace
}  // namespace abl
