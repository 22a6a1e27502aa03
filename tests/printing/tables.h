// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>

#include "ablate/v1/sweeps.pb.h"

namespace abl::printing {

/// A table with all that a renderer must cope with: a metric, a count and a setting, papers' values, a
/// baseline, a cell whose seeds are not all there, an empty one, and a label full of characters that mean
/// something to Markdown, CSV or LaTeX.
inline ablate::v1::Table sample_table() {
  using namespace ablate::v1;
  Table table;
  table.set_sweep("msf-sharing");
  table.set_baseline("o");
  table.set_paper_heading("paper: ImageNet, 100 epochs");
  const auto add_column = [&](const char* name, Column::Kind kind, const char* source, const char* unit,
                              bool has_paper) {
    Column& column = *table.add_columns();
    column.set_name(name);
    column.set_heading(name);
    column.set_kind(kind);
    column.set_source(source);
    column.set_unit(unit);
    column.set_digits(2);
    column.set_has_paper(has_paper);
  };
  add_column("acc", Column::KIND_METRIC, "val/top1", "%", true);
  add_column("params", Column::KIND_COUNT, "params.weights", "M", true);
  add_column("share", Column::KIND_SETTING, "model.attention.share", "", false);
  const auto add_row = [&](const char* id, const char* label) -> TableRow& {
    TableRow& row = *table.add_rows();
    row.set_id(id);
    row.set_label(label);
    return row;
  };
  const auto add_cell = [](TableRow& row, const char* text, std::uint32_t n, double mean, const char* paper) {
    Cell& cell = *row.add_cells();
    cell.set_text(text);
    cell.set_n(n);
    cell.set_of(2);
    if (n > 0) cell.set_mean(mean);
    cell.set_paper(paper);
  };
  TableRow& original = add_row("o", "Original");
  add_cell(original, "81.25 ± 0.35", 2, 81.25, "78.90");
  original.mutable_cells(0)->set_sd(0.35);
  add_cell(original, "21.91", 2, 21'910'000, "");
  add_cell(original, "QKV-W", 2, 0, "");
  TableRow& tied = add_row("h", "MSF, K=V & 50% | \"tied_W\"");
  add_cell(tied, "79.50", 1, 79.5, "79.79");
  add_cell(tied, "23.68", 2, 23'680'000, "23.68");
  add_cell(tied, "QKKPW", 2, 0, "");
  TableRow& waiting = add_row("a", "MSF, Simplest");
  add_cell(waiting, "–", 0, 0, "61.13");
  waiting.mutable_cells(0)->set_missing("2 of 2 trials are queued");
  add_cell(waiting, "16.60", 2, 16'600'000, "16.60");
  add_cell(waiting, "QQQQQ", 2, 0, "");
  return table;
}

/// Rows that four factors made, one of them the same in all, with the labels that factors make, two metrics,
/// a count and papers' values.
inline ablate::v1::Table factor_table() {
  using namespace ablate::v1;
  Table table;
  table.set_sweep("grouping");
  table.set_baseline("attention=Orig,groups=1,lr=0.0005,epochs=20");
  const auto add_column = [&](const char* name, Column::Kind kind, const char* unit, bool has_paper) {
    Column& column = *table.add_columns();
    column.set_name(name);
    column.set_kind(kind);
    column.set_source(std::string{"val/"} + name);
    column.set_unit(unit);
    column.set_digits(2);
    column.set_has_paper(has_paper);
  };
  add_column("top1", Column::KIND_METRIC, "%", true);
  add_column("loss", Column::KIND_METRIC, "", false);
  add_column("params", Column::KIND_COUNT, "M", true);
  for (const char* attention : {"Orig", "MSF"})
    for (const char* groups : {"1", "2", "4"})
      for (const char* lr : {"0.0005", "0.001"}) {
        TableRow& row = *table.add_rows();
        const auto join = [&](const std::string& comma) {
          return std::string{"attention="} + attention + comma + "groups=" + groups + comma + "lr=" + lr +
                 comma + "epochs=20";
        };
        row.set_id(join(","));
        row.set_label(join(", "));
        for (const char* text : {"79.50 ± 0.12", "0.83 ± 0.01", "21.91"}) {
          Cell& cell = *row.add_cells();
          cell.set_text(text);
          cell.set_n(3);
          cell.set_of(3);
          cell.set_mean(79.5);
          cell.set_paper("78.90");
        }
      }
  return table;
}

/// Two rows that are tuned, at two of three points.
inline ablate::v1::TuningResponse sample_tuning() {
  ablate::v1::TuningResponse message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"text(sweep: "s" tuned_by: "s.tuning" method: "sobol" budget: 3 metric: "val/loss" better: "lower"
         seeds: [100, 101] held_out: "0.1" legend: "each row at the best of 3 points"
         ranges { key: "recipe.lr" text: "recipe.lr 0.001 to 0.1 (log)" min: 0.001 max: 0.1 log: true }
         rows {
           row: "a" label: "first" note: "recipe.lr 0.01, the best of 3 points" best: 1
           points { point: 0 values { key: "recipe.lr" value: "0.002" } mean: 2 sd: 0.1 n: 2 text: "2.00 ± 0.10"
                    values_by_seed { seed: 100 value: 1.9 } values_by_seed { seed: 101 value: 2.1 } }
           points { point: 1 values { key: "recipe.lr" value: "0.01" } mean: 1 sd: 0.2 n: 2 text: "1.00 ± 0.20" best: true
                    values_by_seed { seed: 100 value: 0.9 } values_by_seed { seed: 101 value: 1.1 } }
           points { point: 2 values { key: "recipe.lr" value: "0.05" } n: 1 text: "seed 101 failed"
                    values_by_seed { seed: 100 value: 9 } values_by_seed { seed: 101 } }
           spread { points: 2 best: 1 half: 1 worst: 2 seeds_sd: 0.2 }
           warnings: "2 of its 3 points have a value"
         }
         rows { row: "b|c" note: "0 of 3 points have a value"
           points { point: 0 values { key: "recipe.lr" value: "0.002" } text: "–" } })text",
      &message));
  return message;
}

}  // namespace abl::printing
