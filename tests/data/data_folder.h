// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "base/error.h"
#include "data/formats.h"
#include "tests/images/picture_files.h"

namespace abl::data {

/// A folder that a test fills with a data set.
class DataFolder : public testing::Test {
 protected:
  std::filesystem::path path(const std::string& below = "") const { return folder_.path() / below; }
  void put(const std::string& below, const std::string& bytes) const { images::write(path(below), bytes); }
  void put_picture(const std::string& below, std::uint8_t grey = 100) const {
    put(below, images::jpeg_of(24, 16, {grey, grey, grey}));
  }
  static config::DataConfig wants(int classes = 0) {
    config::DataConfig data;
    data.name = "test", data.classes = classes;
    return data;
  }
  DataSet open(int classes = 0, const std::string& below = "") const {
    return open_stored(wants(classes), path(below));
  }
  /// Code and message of the refusal, "" when there was none.
  std::string refusal(int classes = 0, const std::string& below = "") const {
    try {
      open(classes, below);
    } catch (const Error& error) {
      EXPECT_EQ(std::string{error.what()}.find('\n'), std::string::npos) << error.what();
      return error.what();
    }
    return "";
  }
  static std::vector<int> labels(const ImageSource& source) {
    std::vector<int> labels;
    for (std::uint32_t i = 0; i < source.size(); ++i) labels.push_back(source.load(i)->label);
    return labels;
  }

  TemporaryFolder folder_;
};

}  // namespace abl::data
