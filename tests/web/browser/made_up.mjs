// SPDX-License-Identifier: Apache-2.0
// Answers of a sweep made of factors, for charts: as the server would give them, with numbers that are made up.

/** Random numbers from 0 to 1, the same each time (mulberry32). */
function dice(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const kCompare = { test: "welch", interval: "t", correction: "holm", alpha: 0.05, legend: "Welch's t test, Holm-corrected" };
const kColumn = {
  take: "", unit: "", better: "none", has_paper: false, cut: false, level: "", of: "", per_seed: false,
};
const kColumns = [
  { ...kColumn, name: "acc", heading: "top-1", kind: "KIND_METRIC", source: "val/top1", take: "last", unit: "%", better: "higher", digits: 2, has_paper: true, per_seed: true },
  { ...kColumn, name: "loss", heading: "loss", kind: "KIND_METRIC", source: "val/loss", take: "last", better: "lower", digits: 3, per_seed: true },
  { ...kColumn, name: "params", heading: "params", kind: "KIND_COUNT", source: "params.weights", unit: "M", better: "lower", digits: 2 },
  { ...kColumn, name: "flops", heading: "multiply-adds", kind: "KIND_COUNT", source: "macs", unit: "G", better: "lower", digits: 2 },
  { ...kColumn, name: "kernel", heading: "kernel", kind: "KIND_SETTING", source: "model.attention.kernel" },
];

const kCell = {
  n: 0, of: 0, text: "–", paper: "", paper_mark: "", paper_why: "", missing: "", diverged: [], runs: [],
  unfilled: 0, packed: 0, before_mend: 0, imported: 0, row: "", paper_difference: "", settled: 0,
};
const kT = 4.303; // t(0.975) of 2 degrees of freedom

function sampled(mean, sd, digits, more = {}) {
  const se = sd / Math.sqrt(3);
  return {
    ...kCell, mean, sd, n: 3, of: 3, text: `${mean.toFixed(digits)} ± ${sd.toFixed(digits)}`,
    statistics: {
      standard_error: se, interval: { low: mean - kT * se, high: mean + kT * se }, interval_kind: "t",
      why_no_interval: "", baseline: "", compared: 0, baseline_compared: 0, unpaired: [],
      difference_interval_kind: "", why_no_test: "", lines: [],
    },
    ...more,
  };
}

const kDiverged = { ...kCell, n: 3, of: 3, text: "nan", mean: "NaN", diverged: ["1"], missing: "seed 1 diverged" };
const kWaiting = { ...kCell, of: 3, missing: "3 of 3 trials are queued" };

/**
 * The table of a sweep of kernel × depth × lr × sharing: of 2 × 3 × 3 × 2 rows, or so many times these (`times`, a factor of its own). One row
 * diverged, and one waits.
 */
export function factorTable(sweep, times = 1) {
  const random = dice(7);
  const noise = (by) => (random() + random() + random() - 1.5) * by;
  const rows = [];
  for (const kernel of ["dot", "gaussian"])
    for (const depth of [4, 8, 12])
      for (const lr of ["0.0003", "0.001", "0.003"])
        for (const share of ["QKV-W", "QKKKW"])
          for (let i = 0; i < times; ++i) {
            const levels = [["kernel", kernel], ["depth", depth], ["lr", lr], ["share", share], ...(times > 1 ? [["variant", i]] : [])];
            const id = levels.map((level) => level.join("=")).join(",");
            const top1 =
              74 + 1.6 * (kernel === "gaussian") + 0.35 * depth + { "0.0003": -1.8, "0.001": 0.9, "0.003": -0.6 }[lr] -
              0.8 * (share === "QKKKW") - 1.1 * (kernel === "dot" && lr === "0.003") + noise(0.9);
            const params = (share === "QKKKW" ? 0.4 : 0.55) * 1e6 * depth + 3e5;
            const diverged = kernel === "dot" && depth === 12 && lr === "0.003" && share === "QKV-W" && i === 0;
            const waits = kernel === "gaussian" && depth === 8 && lr === "0.0003" && share === "QKKKW" && i === 0;
            const cells = diverged
              ? [kDiverged, kDiverged]
              : waits
                ? [kWaiting, kWaiting]
                : [
                    sampled(top1, 0.12 + 0.3 * random(), 2, rows.length % 5 === 0 ? { paper: (top1 + noise(1)).toFixed(1) } : {}),
                    sampled(2.4 - top1 / 50, 0.01 + 0.01 * random(), 3),
                  ];
            const count = (value) => ({ ...kCell, mean: value, n: 1, of: 0, text: "" });
            rows.push({
              id, label: levels.map((level) => level.join("=")).join(", "), group: "", baseline: "", not_trained: "",
              not_trained_why: "", line: "", line_label: "", level: "", planned: false, imported: "", tuned: "",
              trials: { total: 3, queued: waits ? 3 : 0, leased: 0, running: 0, completed: waits ? 0 : 3, failed: 0, cancelled: 0, held: 0, unfilled: 0 },
              cells: [...cells, count(params), count(params * 196 * 1.1), { ...kCell, text: kernel }].map((cell, place) =>
                place === 2 || place === 3 ? { ...cell, text: (cell.mean / (place === 2 ? 1e6 : 1e9)).toFixed(2) } : cell,
              ),
            });
          }
  return {
    sweep, columns: kColumns, rows, baseline: rows[0].id, baselines: {}, title: "", paper_heading: "paper: ImageNet, 100 epochs",
    notes: [], left_out: 0, next: 0, compare: kCompare, paper_agreement: [], factor_analyses: [], scale: "", pivoted: false,
    tuned: false, search: false, show: [],
  };
}

/** The part of a table that a read asks for, as the server answers it: the baseline's row comes with every part. */
export function partOf(table, query) {
  const first = Number(query.get("first") ?? 0);
  const end = Math.min(table.rows.length, first + Number(query.get("count") ?? table.rows.length));
  const own = table.rows.slice(first, end);
  const rows = first === 0 ? own : [table.rows[0], ...own];
  return { ...table, rows, left_out: table.rows.length - rows.length, next: end < table.rows.length ? end : 0 };
}

/** Makes a page read this table in place of the sweep's own. */
export async function serveTable(page, sweep, table) {
  await page.route(
    (url) => url.pathname === `/api/v1/sweeps/${sweep}/table`,
    (route) => route.fulfill({ json: partOf(table, new URL(route.request().url()).searchParams) }),
  );
}
