# SPDX-License-Identifier: Apache-2.0
"""kill -9 of trainer, worker and scheduler, one after the other: `ablate up` brings them back, running trainers outlive the scheduler, and the
table is the undisturbed one."""
import json
import os
import pathlib
import signal
import subprocess

from fleet import BIN, Fleet, expect, say

SWEEP = """
ablate: 1
name: shapes-part
base:
  model:  {family: simple-vit, dim: 32, depth: 2, heads: 2, dim_head: 16, patch: 4}
  data:   {name: shapes, train_images: 2000, val_images: 500}
  recipe: {use: demo, epochs: 6, batch: 50, eval_every: 2}
rows:
  - {id: orig, label: "Orig.", set: {}}
  - {id: msf, label: "MSF, full", set: {model.attention.kernel: gaussian, model.attention.probe: inside}}
seeds: [0, 1]
table: {baseline: orig, columns: [{name: acc, metric: val/top1, take: last}, {name: loss, metric: val/loss, take: last, digits: 6}]}
retry: {max: 3}
"""


class Up(Fleet):
    """`ablate up` in the foreground."""

    def up(self):
        self.start("up", "ablate", "up", "--home", self.home, "--slots", 2, "--threads", 1)
        self.until(lambda: self.ablate("workers", "--json", check=False).returncode == 0 and self.connected(), "up is ready", 60)
        (self.home / "sweep.yaml").write_text(SWEEP)
        self.ablate("submit", self.home / "sweep.yaml")

    def connected(self):
        answer = self.ablate("workers", "--json", check=False)
        return answer.returncode == 0 and any(w["connected"] for w in json.loads(answer.stdout).get("workers", []))

    def pid_of(self, program, run_directory=""):
        """The program's process below this `ablate up`, of that run where one is named."""
        for entry in pathlib.Path("/proc").iterdir():
            try:
                command = (entry / "cmdline").read_bytes().split(b"\0")
                environment = (entry / "environ").read_bytes()
                if (command[0].endswith(b"/" + program.encode()) and str(self.home).encode() in environment
                        and run_directory.encode() in environment):
                    return int(entry.name)
            except (OSError, ValueError, IndexError):
                continue
        return None

    def trainer_in_the_middle(self):
        """The process of a run that has a good part of its steps before it, and the attempts of all that run."""
        trial = self.running("shapes-part", step=10)
        pid = trial and self.pid_of("ablate-trainer", f"ABLATE_RUN_DIR={self.home}/runs/{trial['id']}/{trial['attempt']}\0")
        return pid and (pid, {t["id"]: t["attempt"] for t in self.trials("shapes-part") if t["state"] == "TRIAL_STATE_RUNNING"})

    def kill_program(self, program):
        pid = self.until(lambda: self.pid_of(program), f"{program} runs", 60)
        say(f"kill -9 of {program} ({pid})")
        os.kill(pid, signal.SIGKILL)
        return pid


def main():
    with Up("calm") as calm, Up("kills") as fleet:
        calm.up()
        calm.wait_for("shapes-part")
        calm.stop("up")

        fleet.up()
        fleet.until(lambda: fleet.running("shapes-part", step=30), "a trial is in the middle of its training")
        fleet.kill_program("ablate-trainer")
        fleet.until(lambda: any(t["attempt"] == 2 and t["step"] >= 30 for t in fleet.trials("shapes-part")), "the killed trial runs again")

        trainer, attempts = fleet.until(fleet.trainer_in_the_middle, "a trainer is in the middle of its run")
        fleet.kill_program("ablate-scheduler")
        expect(pathlib.Path(f"/proc/{trainer}").exists(), "a running trainer outlives the scheduler")
        fleet.until(fleet.connected, "the scheduler is back and the worker with it", 60)
        now = {t["id"]: t["attempt"] for t in fleet.trials("shapes-part")}
        expect(all(now[trial] == attempt for trial, attempt in attempts.items()), "no trial was started again by the scheduler's restart")

        fleet.until(lambda: fleet.running("shapes-part", step=10) or fleet.json("show", "shapes-part")["summary"]["trials"]["queued"] == 0,
                    "a trial runs")
        fleet.kill_program("ablate-worker")
        fleet.until(fleet.connected, "the worker is back", 60)
        fleet.wait_for("shapes-part")

        tables = [json.loads(subprocess.run([str(BIN / "ablate"), "table", "shapes-part", "--store", str(f.store), "--json"], check=True,
                                            capture_output=True, text=True, env=f.environment).stdout) for f in (calm, fleet)]
        values = [[[r["value"] for r in c["runs"]] for row in t["rows"] for c in row["cells"]] for t in tables]
        print(fleet.ablate("table", "shapes-part").stdout)
        expect(all(len(c) == 2 for c in values[0]), "every cell has both seeds")
        expect(values[0] == values[1], "the table is the undisturbed one, to the last bit")


main()
