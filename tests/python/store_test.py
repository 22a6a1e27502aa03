#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""python/ablate in a notebook: what it reads of a results file, with which digits, and what it says of files that are none."""
import math
import multiprocessing
import os
import pathlib
import shutil
import sqlite3
import statistics
import sys
import tempfile
import unittest
import warnings

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "python"))
import ablate  # noqa: E402
from ablate import _store  # noqa: E402

ARCHIVE = SOURCE / "docs/results/cifar.abl"
SWEEP = "msf-table-1-cifar"


class StoreTest(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.folder = pathlib.Path(kept.name)
        self.file = self.folder / "results 100%?.db"
        shutil.copyfile(ARCHIVE, self.file)
        self.file.chmod(0o600)

    def open(self):
        store = ablate.open(self.file, frames=False)
        self.addCleanup(store.close)
        return store

    def change(self, *statements):
        with sqlite3.connect(self.file) as connection:
            for each in statements:
                connection.execute(each)
        connection.close()

    def test_the_table_has_every_row_with_the_digits_of_its_seeds(self):
        store = self.open()
        table, values = store.table(SWEEP), store.values(SWEEP)
        self.assertEqual(len(table), 18)
        self.assertEqual(list(table[0]), ["row", "label", "group", "share", "acc", "acc_sd", "acc_n", "acc_paper", "params", "params_paper"])
        self.assertEqual((table[0]["label"], table[0]["share"], table[0]["acc_paper"], table[0]["params"]), ("MSF, Simplest", "QQQQQ", "61.13", 151168.0))
        for row in table:
            seeds = [each["acc"] for each in values if each["row"] == row["row"]]
            self.assertEqual((len(seeds), row["acc_n"]), (3, 3))
            self.assertTrue(math.isclose(row["acc"], statistics.fmean(seeds), rel_tol=1e-15))
            self.assertTrue(math.isclose(row["acc_sd"], statistics.stdev(seeds), rel_tol=1e-13))

    def test_curves_are_the_points_of_each_seed(self):
        points = self.open().curves(SWEEP, "val/top1")
        self.assertEqual(len(points), 18 * 3 * 3)
        self.assertEqual(points[0], {"row": "a", "seed": 0, "run": 2, "step": 781, "value": 43.29})
        self.assertEqual([p["step"] for p in points[:9]], [781, 1562, 2343] * 3)
        self.assertEqual({p["row"] for p in self.open().curves(SWEEP, "val/top1", row="b")}, {"b"})
        last = {(p["row"], p["seed"]): p["value"] for p in points if p["step"] == 2343}
        self.assertEqual(last, {(v["row"], v["seed"]): v["acc"] for v in self.open().values(SWEEP)})

    def test_names_that_are_not_there_name_the_nearest(self):
        store = self.open()
        for ask, message in ((lambda: store.table("msf-table-1-cifa"), r"no sweep 'msf-table-1-cifa' in .*; did you mean 'msf-table-1-cifar'\?$"),
                             (lambda: store.curves(SWEEP, "val/top2"), r"has no metric 'val/top2'; did you mean 'val/top[15]'\?$"),
                             (lambda: store.curves(SWEEP, "val/top1", row="zz"), r"has no row 'zz'; expected one of a, b, c")):
            with self.assertRaisesRegex(ablate.Error, message):
                ask()

    def test_values_that_are_not_finite_leave_no_mean_and_stay_in_curves(self):
        run = next(v["run"] for v in self.open().values(SWEEP) if (v["row"], v["seed"]) == ("b", 1))
        self.change(f"UPDATE metric_summary SET last = NULL, last_kind = 'NaN' WHERE run_id = {run} AND metric_id = (SELECT id FROM metric WHERE name = 'val/top1')",
                    f"UPDATE point SET value = NULL, kind = '-Infinity' WHERE run_id = {run} AND step = 2343 AND metric_id = (SELECT id FROM metric WHERE name = 'val/top1')")
        rows = {row["row"]: row for row in self.open().table(SWEEP)}
        self.assertEqual((rows["b"]["acc"], rows["b"]["acc_sd"], rows["b"]["acc_n"], rows["b"]["acc_diverged"]), (None, None, 3, 1))
        self.assertEqual((rows["a"]["acc_diverged"], rows["a"]["acc"] is None), (0, False))
        self.assertTrue(math.isnan(next(v["acc"] for v in self.open().values(SWEEP) if v["run"] == run)))
        self.assertEqual([p["value"] for p in self.open().curves(SWEEP, "val/top1", row="b") if p["run"] == run][-1], -math.inf)

    def test_trials_that_are_not_completed_are_in_no_mean(self):
        self.change("UPDATE trial SET state = 'failed', reason = 'out of memory' WHERE id IN (SELECT trial FROM trial_summary WHERE sweep = '"
                    + SWEEP + "' AND row = 'a' AND seed = 0)")
        row = self.open().table(SWEEP)[0]
        self.assertEqual(row["acc_n"], 2)
        trial = next(t for t in self.open().trials(SWEEP) if (t["row"], t["seed"]) == ("a", 0))
        self.assertEqual((trial["state"], trial["reason"]), ("failed", "out of memory"))

    def test_columns_of_expressions_are_told(self):
        self.change("INSERT INTO sweep_column (sweep_id, position, name, heading, kind, source, take, unit, better, digits) "
                    f"SELECT id, 99, 'gain', 'gain', 'expression', 'acc - baseline.acc', '', '', 'none', -1 FROM sweep WHERE name = '{SWEEP}'")
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            self.assertNotIn("gain", self.open().table(SWEEP)[0])
        self.assertIn("columns of expressions are not in a results file, and left out: gain", str(said[0].message))
        self.assertEqual(said[0].filename, __file__)

    def test_what_is_no_results_file_is_one_line(self):
        (self.folder / "text.db").write_text("no database " * 100)
        with sqlite3.connect(self.folder / "other.db") as connection:
            connection.execute("CREATE TABLE t (x)")
        connection.close()
        (self.folder / "empty.db").touch()
        cut = self.folder / "cut.db"
        cut.write_bytes(ARCHIVE.read_bytes()[:70_000])
        for name, message in (("text.db", "file is not a database"), ("other.db", "not a results file of ablate"), ("empty.db", "not a results file of ablate"),
                              ("gone.db", "no such file"), ("", "not a file"), ("cut.db", "cut.db: ")):
            with self.subTest(name), self.assertRaisesRegex(ablate.Error, message):
                ablate.open(self.folder / name, frames=False).table(SWEEP)

    def test_a_file_of_a_folder_that_nobody_may_write_is_read(self):
        self.change("PRAGMA journal_mode = WAL")
        self.file.chmod(0o444)
        self.folder.chmod(0o555)
        self.addCleanup(self.folder.chmod, 0o700)
        answers = multiprocessing.get_context("fork").SimpleQueue()

        def ask():
            if os.geteuid() == 0:
                os.setuid(65534)  # root may write everywhere
            try:
                answers.put(len(ablate.open(self.file, frames=False).sweeps()))
            except BaseException as error:
                answers.put(str(error))

        child = multiprocessing.get_context("fork").Process(target=ask)
        child.start()
        child.join()
        self.assertEqual((child.exitcode, answers.get()), (0, 7))
        self.assertEqual(os.listdir(self.folder), [self.file.name])

    def test_nothing_is_written(self):
        before = self.file.read_bytes()
        store = self.open()
        store.table(SWEEP)
        with self.assertRaisesRegex(ablate.Error, "attempt to write a readonly database"):
            store.sql("DELETE FROM point")
        self.assertEqual(self.file.read_bytes(), before)

    def test_queries_of_the_views(self):
        store = self.open()
        self.assertEqual(store.sql("SELECT COUNT(*) AS n FROM metric_point WHERE sweep = ? AND metric = 'val/top1' AND newest", (SWEEP,)), [{"n": 162}])
        with self.assertRaisesRegex(ablate.Error, "no such table: elsewhere"):
            store.sql("SELECT * FROM elsewhere")

    def test_a_sum_is_that_of_the_product(self):
        self.assertEqual(_store._mean_sd([0.1] * 10)[0], 0.09999999999999999)
        self.assertEqual(_store._mean_sd([5.0]), (5.0, None))
        self.assertEqual(_store._mean_sd([1e300, -1e300])[1], math.sqrt(2) * 1e300)
        self.assertGreater(_store._mean_sd([0.0, 1e-200])[1], 0)
        self.assertEqual(_store._mean_sd([2.0, 2.0]), (2.0, 0.0))

    def test_frames_of_pandas(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("pandas is not installed")
        with ablate.open(self.file) as store:
            table = store.table(SWEEP)
            self.assertIsInstance(table, pandas.DataFrame)
            self.assertEqual((table["acc"].dtype, table["acc_n"].dtype), ("float64", "int64"))
            curve = store.curves(SWEEP, "val/top1").groupby(["row", "step"])["value"].mean().unstack("row")
            self.assertEqual(curve.shape, (3, 18))
            self.assertEqual(list(store.sql("SELECT 1 AS a WHERE 0").columns), ["a"])


if __name__ == "__main__":
    unittest.main()
