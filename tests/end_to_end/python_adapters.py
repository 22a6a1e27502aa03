# SPDX-License-Identifier: Apache-2.0
"""Lightning, in one process and in two, and Hugging Face's Trainer, as installed, with the adapters of python/ablate: a small training each as
a trial, paused in its middle, and resumed to its end. Its accuracy is in the table."""
import json
import sqlite3

from fleet import Fleet, expect, say
from pythons import install, path_of, python_with

STEPS, EPOCHS = 4, 3  # of an epoch

COMMON = """
import pathlib, time, torch, ablate
torch.set_num_threads(1)
torch.manual_seed(ablate.seed())
params = ablate.params(lr=0.1, gate="", ranks=1)
inputs = torch.randn(64, 8, generator=torch.Generator().manual_seed(1))
labels = (inputs.sum(1) > 0).long()

def wait_for(step):  # the training's pace is the test's to say
    while len(pathlib.Path(params.gate).read_text()) < step and not ablate.should_stop():
        time.sleep(0.01)
"""

LIGHTNING = COMMON + """
import warnings
warnings.filterwarnings("ignore")
import ablate.lightning
from lightning.pytorch import LightningModule, Trainer
from torch.utils.data import DataLoader, TensorDataset

class Module(LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(8, 2)
    def training_step(self, batch, index):
        wait_for(self.trainer.global_step + 1)
        loss = torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])
        self.log("train/loss", loss)
        return loss
    def validation_step(self, batch, index):
        self.log("val/top1", 100 * (self.net(batch[0]).argmax(1) == batch[1]).float().mean())
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=params.lr)

data = TensorDataset(inputs, labels)
trainer = Trainer(max_epochs=3, accelerator="cpu", devices=params.ranks, strategy="ddp" if params.ranks > 1 else "auto", logger=ablate.lightning.Logger(), callbacks=[ablate.lightning.Callback()],
                  enable_checkpointing=False, enable_progress_bar=True, log_every_n_steps=1, default_root_dir=ablate.run_dir())
begun = ablate.lightning.resume()
trainer.fit(Module(), DataLoader(data, 16 // params.ranks, shuffle=True), DataLoader(data, 64), ckpt_path=begun)
print("trained", trainer.current_epoch, "epochs,", trainer.global_step, "steps")
"""

HUGGING_FACE = COMMON + """
import ablate.huggingface
from transformers import Trainer, TrainingArguments, PreTrainedModel, PretrainedConfig

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(8, 2)
    def forward(self, x, labels=None):
        logits = self.net(x)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}

class Paced(Trainer):
    def training_step(self, *args, **kwargs):
        wait_for(self.state.global_step + 1)
        return super().training_step(*args, **kwargs)

rows = [{"x": x, "labels": y} for x, y in zip(inputs, labels)]
arguments = TrainingArguments(output_dir=ablate.run_dir(), num_train_epochs=3, per_device_train_batch_size=16, learning_rate=params.lr, use_cpu=True,
                              eval_strategy="epoch", save_strategy="epoch", logging_steps=1, report_to=[], seed=ablate.seed(), disable_tqdm=True)
trainer = Paced(model=Model(), args=arguments, train_dataset=rows, eval_dataset=rows, callbacks=[ablate.huggingface.Callback()],
                compute_metrics=lambda p: {"accuracy": float((p.predictions.argmax(1) == p.label_ids).mean())})
trainer.train(resume_from_checkpoint=ablate.huggingface.resume())
print("trained", round(trainer.state.epoch), "epochs,", trainer.state.global_step, "steps")
"""


def submit(fleet, python, name, script, metric, ranks):
    file = fleet.home / f"{name}.py"
    file.write_text(script)
    (fleet.home / f"{name}.yaml").write_text(json.dumps({
        "ablate": 1, "name": name,
        "command": {"argv": [python, str(file)], "params": {"lr": 0.1, "gate": str(fleet.home / "gate"), "ranks": ranks}}, "rows": [{"id": "a", "set": {"params.lr": 0.5}}],
        "table": {"columns": [{"name": "acc", "metric": metric, "take": "last"}, {"name": "best", "metric": metric, "take": "best", "better": "higher"}]}}))
    fleet.ablate("submit", fleet.home / f"{name}.yaml")


def query(fleet, text, *values):
    with sqlite3.connect(f"file:{fleet.store}?mode=ro", uri=True) as store:
        return store.execute(text, values).fetchall()


def judge(fleet, name, metric, loss, stopped_at):
    print(fleet.ablate("table", name).stdout)
    trial = fleet.trials(name)[0]
    log = fleet.ablate("logs", trial["run"]).stdout
    expect(trial["state"] == "TRIAL_STATE_COMPLETED" and trial["attempt"] == 2, f"{name} is completed by its second attempt: {trial['state']} {trial['attempt']}")
    expect(f"trained {EPOCHS} epochs, {EPOCHS * STEPS} steps" in log, f"{name} did every step once")
    begun = query(fleet, "SELECT resumed_from_step, total_steps FROM run WHERE id = ?", trial["run"])
    expect(begun == [(stopped_at, EPOCHS * STEPS)], f"{name} went on from step {stopped_at} of {EPOCHS * STEPS}: {begun}")
    steps = [step for step, in query(fleet, "SELECT step FROM metric_point WHERE sweep = ? AND metric = ? AND newest ORDER BY step", name, loss)]
    expect(steps == list(range(1, EPOCHS * STEPS + 1)), f"{name} has its loss of each step: {steps}")
    points = query(fleet, "SELECT step, value FROM metric_point WHERE sweep = ? AND metric = ? AND newest ORDER BY step", name, metric)
    # Hugging Face's Trainer evaluates when it is stopped, too
    expect([step for step, _ in points if step % STEPS == 0] == [STEPS, 2 * STEPS, 3 * STEPS] and {step for step, _ in points if step % STEPS} <= {stopped_at},
           f"{name} was evaluated after each epoch: {points}")
    cells = fleet.json("table", name)["rows"][0]["cells"]
    expect(cells[0]["mean"] == points[-1][1] and cells[1]["mean"] == max(value for _, value in points), f"its accuracy is in the table: {cells[0]['mean']}")
    expect(query(fleet, "SELECT SUM(refused_lines), SUM(repeated_points) FROM run r JOIN trial_summary t ON t.trial = r.trial_id WHERE t.sweep = ?", name)
           == [(0, 0)], "nothing of it was refused")


def main():
    python = python_with("torch", "lightning", "transformers", "accelerate", "pip")
    with Fleet("adapters") as fleet:
        fleet.environment.update(PYTHONPATH=path_of(install(python, fleet.home)), HF_HUB_OFFLINE="1", PYTHONWARNINGS="ignore", OMP_NUM_THREADS="1")
        fleet.environment.pop("RANK", None)
        gate = fleet.home / "gate"
        gate.write_text("." * 6)
        fleet.start_scheduler()
        fleet.start_worker("willing", "--slots", 3, "--allow-commands")
        kinds = (("lightning-run", LIGHTNING, "val/top1", "train/loss", 1), ("huggingface-run", HUGGING_FACE, "eval_accuracy", "loss", 1),
                 ("lightning-ranks", LIGHTNING, "val/top1", "train/loss", 2))
        for name, script, metric, _, ranks in kinds:
            submit(fleet, python, name, script, metric, ranks)

        def done(name):
            return query(fleet, "SELECT MAX(p.step) FROM metric_point p WHERE p.sweep = ? AND p.metric IN ('train/loss', 'loss')", name)[0][0]

        for name, *_ in kinds:
            fleet.until(lambda: done(name) == 6, f"{name} is in the middle of its second epoch")
        say("paused: each is asked to stop, and writes a checkpoint")
        for name, *_ in kinds:
            fleet.ablate("pause", name, "--stop-running")
        for name, *_ in kinds:
            fleet.until(lambda: fleet.trials(name)[0]["state"] == "TRIAL_STATE_QUEUED", f"{name} is paused")
        told = {name: [step for step, in query(fleet, "SELECT c.step FROM checkpoint c JOIN run r ON r.id = c.run_id JOIN trial_summary t ON"
                                               " t.trial = r.trial_id WHERE t.sweep = ? ORDER BY c.step", name)] for name, *_ in kinds}
        expect(all(steps[0] == STEPS and STEPS < steps[-1] <= 7 for steps in told.values()), f"checkpoints are of the first epoch, and of the stop: {told}")
        gate.write_text("." * EPOCHS * STEPS)
        for name, *_ in kinds:
            fleet.ablate("resume", name)
        for name, _, metric, loss, _ in kinds:
            fleet.wait_for(name)
            judge(fleet, name, metric, loss, told[name][-1])


main()
