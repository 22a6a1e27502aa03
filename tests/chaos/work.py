# SPDX-License-Identifier: Apache-2.0
"""A stream of sweeps, as people submit them: small ones, of programs of all kinds; some are cancelled, paused, given more trials of others."""
import json
import pathlib
import subprocess
import sys
import time

from fleet import BIN

HERE = pathlib.Path(__file__).resolve().parent
KINDS = {  # kind -> points, pause between them in ms, points between checkpoints, bytes of chatter at each
    "quick": ((0, 6), (0, 0), 0, 0),
    "steady": ((15, 50), (5, 40), 5, 0),
    "slow": ((3, 8), (100, 400), 0, 0),
    "chatty": ((100, 300), (0, 2), 0, 400),
    "odd": ((5, 30), (0, 10), 4, 0),
    "flaky": ((1, 8), (0, 20), 3, 0),
    "fails": ((0, 5), (0, 20), 0, 0),
}
COLUMNS = [{"name": "last", "metric": "value"}, {"name": "best", "metric": "value", "take": "max"},
           {"name": "least", "metric": "value", "take": "min"}, {"name": "mean", "metric": "value", "take": "mean"}, {"name": "who", "metric": "attempt", "take": "max"}]


TRAINED = {"ablate": 1, "name": "trained",
           "base": {"model": {"family": "simple-vit", "dim": 16, "depth": 1, "heads": 2, "dim_head": 8, "patch": 8},
                    "data": {"name": "shapes", "train_images": 600, "val_images": 100},
                    "recipe": {"use": "demo", "epochs": 8, "batch": 20, "eval_every": 1}},
           "rows": [{"id": "orig", "label": "Orig."},
                    {"id": "msf", "label": "MSF", "set": {"model.attention.kernel": "gaussian", "model.attention.probe": "inside"}}],
           "seeds": [0, 1], "retry": {"max": 100},
           "table": {"columns": [{"name": "loss", "metric": "val/loss"}, {"name": "acc", "metric": "val/top1"}]}}


class Work:
    def __init__(self, world, chance, enough):
        self.world, self.chance, self.enough = world, chance, enough
        self.sweeps = {}  # name -> what the checker is told of it
        self.open = set()
        self.commands = []  # on their way: (popen, what to do when it has ended)
        self.waiting = None  # a sweep whose submission was not acknowledged: said again
        self.paused = set()
        self.shared = []  # rows that are to be claimed again
        self.number = 0
        self.next_look = 0.0
        if world.trainer:
            (world.home / "sweeps" / "trained.yaml").write_text(json.dumps(TRAINED))
            self.sweeps["trained"] = {"acknowledged": False, "trials": 4, "cancelled": False}
            self.waiting = "trained"

    def rows(self, name):
        """One sweep's rows: either of programs that come to their end, or of those that fail."""
        kinds = ["fails"]
        if self.chance.random() > 0.12:
            kinds = self.chance.choices([kind for kind in KINDS if kind != "fails"], [6, 8, 2, 1, 3, 2], k=self.chance.randint(1, 4))
        rows = []
        for number, kind in enumerate(kinds):
            points, pause, checkpoints, chatter = KINDS[kind]
            rows.append({"kind": kind, "points": self.chance.randint(*points), "pause_ms": self.chance.randint(*pause), "checkpoints": checkpoints,
                         "chatter": chatter, "tag": f"{name}-{number}"})
        return rows

    def make(self):
        name = f"s{self.number:04}"
        self.number += 1
        rows = self.rows(name)
        if self.shared and self.chance.random() < 0.3:
            rows = self.chance.choice(self.shared) + rows[:1]
        elif all(row["kind"] not in ("fails", "flaky") for row in rows):
            self.shared.append(rows[:2])
        fails = any(row["kind"] == "fails" for row in rows)
        rows = [row for row in rows if (row["kind"] == "fails") == fails]
        seeds = self.chance.choice((1, 1, 2))
        sweep = {"ablate": 1, "name": name,
                 "command": {"argv": [sys.executable, "-S", "-E", str(HERE / "trial.py"), str(self.world.records)], "folder": "/",
                             "version": "1", "reuse": True, "params": {key: rows[0][key] for key in rows[0]}},
                 "rows": [{"id": f"r{i}", "label": row["kind"], "set": {f"params.{key}": value for key, value in row.items()}}
                          for i, row in enumerate(rows)],
                 "seeds": list(range(seeds)), "retry": {"max": 1 if fails else 100}, "table": {"columns": COLUMNS}}
        (self.world.home / "sweeps" / f"{name}.yaml").write_text(json.dumps(sweep))
        self.sweeps[name] = {"acknowledged": False, "trials": len(rows) * seeds, "cancelled": False}
        return name

    def command(self, then, *argv):
        log = open(self.world.home / "logs" / "ablate.log", "ab")
        log.write(f"-- {' '.join(map(str, argv))}\n".encode())
        log.flush()
        popen = subprocess.Popen([str(BIN / "ablate"), *map(str, argv)], env=self.world.submitter(), stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        log.close()
        self.commands.append((popen, time.monotonic(), then))

    def work(self):
        """To be called all the time."""
        for entry in list(self.commands):
            popen, since, then = entry
            if popen.poll() is None and time.monotonic() - since > 120:
                popen.kill()
            if popen.poll() is not None:
                self.commands.remove(entry)
                then(popen.returncode)
        if self.commands or time.monotonic() < self.next_look:
            return
        self.next_look = time.monotonic() + 0.05
        if self.waiting or self.queued() < self.enough:
            self.submit(self.waiting or self.make())
        elif self.open and self.chance.random() < 0.05:
            self.change(self.chance.choice(sorted(self.open)))

    def queued(self):
        """Trials that wait, as the store says; as if there were enough where it cannot be read."""
        reader = self.world.reader()
        if not reader:
            return 0
        try:
            return reader.execute("SELECT COALESCE(SUM(queued), 0) FROM sweep_count").fetchone()[0]
        except Exception:  # being made, or changed, or locked
            return self.enough
        finally:
            reader.close()

    def submit(self, name):
        def then(code):
            self.waiting = name if code != 0 else None
            if code == 0:
                self.sweeps[name]["acknowledged"] = True
                if name != "trained":
                    self.open.add(name)
            elif code not in (1, 3, -9):  # 1: a fail point's error; 3: no scheduler, no room
                self.world.find("command", f"ablate submit {name}: exit code {code}: see logs/ablate.log")
            self.next_look = time.monotonic() + (0.3 if code != 0 else 0)
        self.command(then, "submit", self.world.home / "sweeps" / f"{name}.yaml", "--priority", self.chance.choice((0, 0, 1)))

    def change(self, name):
        self.open.discard(name)
        if self.chance.random() < 0.5:
            self.sweeps[name]["cancelled"] = True  # whether or not it is heard
            return self.command(lambda code: None, "cancel", name)
        self.paused.add(name)
        return self.command(lambda code: self.resume(name), "pause", name)

    def resume(self, name):
        def then(code):
            if code == 0:
                self.paused.discard(name)
        self.command(then, "resume", name)

    def settle(self):
        """Nothing new; what was paused goes on. Returns: whether there is nothing left to be said."""
        if self.commands:
            self.work_off()
            return False
        if self.waiting:
            self.submit(self.waiting)
            return False
        if self.paused:
            self.resume(next(iter(self.paused)))
            return False
        return True

    def work_off(self):
        for entry in list(self.commands):
            popen, since, then = entry
            if popen.poll() is None and time.monotonic() - since > 120:
                popen.kill()
            if popen.poll() is not None:
                self.commands.remove(entry)
                then(popen.returncode)
