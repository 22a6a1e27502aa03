# SPDX-License-Identifier: Apache-2.0
"""Makes a peer's own store of the runs that store_maker makes for us, as far as it gets in LIMIT seconds: run by a Python that has the peer.

  peer_stores.py mlflow|optuna|aim FOLDER TRIALS STEPS LIMIT      prints one JSON object: trials, seconds, bytes

Ten seeds of each row; two metrics of so many steps; parameters `i` and `seed`. MLflow's and Optuna's rows are put straight into their tables, as
their own writers would have left them; Aim's are tracked, since its files are no tables."""
import json
import math
import os
import sqlite3
import sys
import time

METRICS = ("loss", "accuracy")
BEGAN_MS = 1_700_000_000_000


def trials_of(trials):
    """Number, row and seed of each, in the order in which they ran."""
    seeds = min(10, trials)
    rows = trials // seeds
    for seed in range(seeds):
        for row in range(rows):
            yield seed * rows + row + 1, row, seed


def value_of(trial, metric, step, steps):
    falling = math.exp(-3.0 * step / steps) + 0.001 * (trial % 97) + 1e-8 * trial
    return falling if metric == "loss" else 100 * (1 - falling / 2)


def write(db, trials, until, put):
    """Calls `put` for each trial, and commits now and then. Returns: how many there was time for."""
    made = 0
    for trial, row, seed in trials_of(trials):
        put(trial, row, seed)
        made += 1
        if made % 1000 == 0:
            db.commit()
            if time.monotonic() > until:
                break
    db.commit()
    db.close()
    return made


def mlflow_store(folder, trials, steps, until):
    from mlflow.tracking import MlflowClient
    file = f"{folder}/m.db"
    experiment = int(MlflowClient(f"sqlite:///{file}").create_experiment("made", artifact_location=f"{folder}/artifacts"))
    db = sqlite3.connect(file)
    db.execute("PRAGMA synchronous = OFF")

    def put(trial, row, seed):
        run, began = f"{trial:032x}", BEGAN_MS + trial
        db.execute("INSERT INTO runs (run_uuid, name, source_type, source_name, entry_point_name, user_id, status, start_time, end_time, "
                   "source_version, lifecycle_stage, artifact_uri, experiment_id) VALUES (?, ?, 'UNKNOWN', '', '', 'bench', 'FINISHED', ?, ?, '', "
                   "'active', '', ?)", (run, f"trial-{trial}", began, began + steps, experiment))
        db.executemany("INSERT INTO params (key, value, run_uuid) VALUES (?, ?, ?)", [("i", str(row), run), ("seed", str(seed), run)])
        db.execute("INSERT INTO tags (key, value, run_uuid) VALUES ('mlflow.runName', ?, ?)", (f"trial-{trial}", run))
        db.executemany("INSERT INTO metrics (key, value, timestamp, run_uuid, step, is_nan) VALUES (?, ?, ?, ?, ?, 0)",
                       [(metric, value_of(trial, metric, step, steps), began + step, run, step)
                        for metric in METRICS for step in range(1, steps + 1)])
        db.executemany("INSERT INTO latest_metrics (key, value, timestamp, step, is_nan, run_uuid) VALUES (?, ?, ?, ?, 0, ?)",
                       [(metric, value_of(trial, metric, steps, steps), began + steps, steps, run) for metric in METRICS])
    return write(db, trials, until, put)


def optuna_store(folder, trials, steps, until):
    """A trial of Optuna has one series of intermediate values: the metrics take its even and its odd steps."""
    import optuna
    from optuna.distributions import IntDistribution, distribution_to_json
    file = f"{folder}/o.db"
    optuna.create_study(study_name="made", storage=f"sqlite:///{file}")
    whole = distribution_to_json(IntDistribution(0, 10**6))
    db = sqlite3.connect(file)
    db.execute("PRAGMA synchronous = OFF")

    def put(trial, row, seed):
        when = time.strftime("%Y-%m-%d %H:%M:%S.000000", time.gmtime(BEGAN_MS // 1000 + trial))
        db.execute("INSERT INTO trials VALUES (?, ?, 1, 'COMPLETE', ?, ?)", (trial, trial - 1, when, when))
        db.executemany("INSERT INTO trial_params (trial_id, param_name, param_value, distribution_json) VALUES (?, ?, ?, ?)",
                       [(trial, "i", row, whole), (trial, "seed", seed, whole)])
        db.execute("INSERT INTO trial_values (trial_id, objective, value, value_type) VALUES (?, 0, ?, 'FINITE')",
                   (trial, value_of(trial, "loss", steps, steps)))
        db.executemany("INSERT INTO trial_intermediate_values (trial_id, step, intermediate_value, intermediate_value_type) "
                       "VALUES (?, ?, ?, 'FINITE')",
                       [(trial, 2 * step + i, value_of(trial, metric, step, steps))
                        for step in range(1, steps + 1) for i, metric in enumerate(METRICS)])
    return write(db, trials, until, put)


def aim_store(folder, trials, steps, until):
    from aim import Repo, Run
    from aim.sdk.index_manager import RepoIndexManager
    repo = Repo.from_path(folder, init=True)
    hashes = []
    for trial, row, seed in trials_of(trials):
        run = Run(repo=repo, experiment="made", system_tracking_interval=None, log_system_params=False, capture_terminal_logs=False)
        run["hparams"] = {"i": row, "seed": seed}
        for step in range(1, steps + 1):
            for metric in METRICS:
                run.track(value_of(trial, metric, step, steps), name=metric, step=step)
        hashes.append(run.hash)
        run.close()
        if time.monotonic() > until:
            break
    index = RepoIndexManager.get_index_manager(repo)  # its queries see indexed runs alone
    for each in hashes:
        index.index(each)
    return len(hashes)


def main():
    peer, folder, trials, steps, limit = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
    os.makedirs(folder, exist_ok=True)
    begun = time.monotonic()
    made = {"mlflow": mlflow_store, "optuna": optuna_store, "aim": aim_store}[peer](folder, trials, steps, begun + limit)
    size = sum(os.lstat(os.path.join(path, name)).st_size for path, _, names in os.walk(folder) for name in names)
    print(json.dumps({"trials": made, "seconds": round(time.monotonic() - begun, 1), "bytes": size}))


main()
