# SPDX-License-Identifier: Apache-2.0
"""For Lightning's Trainer, from 2.0 on (`lightning` or `pytorch_lightning`):

    import ablate.lightning

    trainer = Trainer(max_epochs=10, logger=ablate.lightning.Logger(), callbacks=[ablate.lightning.Callback()],
                      enable_checkpointing=False)
    trainer.fit(model, data, ckpt_path=ablate.lightning.resume())
"""
import math
import sys

import ablate
from ablate import _rank
from ablate._script import script

if "pytorch_lightning" in sys.modules and "lightning" not in sys.modules:
    from pytorch_lightning import Callback as _Callback
    from pytorch_lightning.loggers.logger import Logger as _Logger
    from pytorch_lightning.utilities.exceptions import SIGTERMException
else:
    try:
        from lightning.pytorch import Callback as _Callback
        from lightning.pytorch.loggers.logger import Logger as _Logger
        from lightning.pytorch.utilities.exceptions import SIGTERMException
    except ImportError:
        try:
            from pytorch_lightning import Callback as _Callback
            from pytorch_lightning.loggers.logger import Logger as _Logger
            from pytorch_lightning.utilities.exceptions import SIGTERMException
        except ImportError as error:
            raise ablate.Error(f"ablate.lightning needs Lightning, from 2.0 on: pip install lightning ({error})") from error


def resume():
    """For `ckpt_path`: the checkpoint of an earlier attempt, or None."""
    found = ablate.resume()
    return None if found is None else str(found)


class Logger(_Logger):
    """What the module logs (`self.log("val/top1", …)`), under its own names. Lightning counts steps from 0; here they are steps done."""

    @property
    def name(self):
        return "ablate"

    @property
    def version(self):
        return 0

    @property
    def save_dir(self):
        return str(ablate.run_dir())

    def log_metrics(self, metrics, step=None):
        if metrics and _rank.is_first():
            ablate.log(0 if step is None else step + 1, metrics)

    def log_hyperparams(self, params, *args, **kwargs):
        """They are the trial's params already."""


class Callback(_Callback):
    """Writes a checkpoint every so many epochs, and when the trial is asked to stop. Then the metrics of that step are told, an evaluation
    that is due among them, and Lightning ends the program before the next batch. Says how many steps there will be, and where it goes on."""

    def __init__(self, every_n_epochs=1):
        self._every = every_n_epochs
        self._ends = False  # it was asked to, and has its checkpoint
        ablate.should_stop()  # from here on SIGTERM is a flag

    def on_train_start(self, trainer, module):
        # Lightning's own handler breaks an evaluation off, whose numbers would be missing, and lets ranks wait for each other inside it
        script().stop.watch_alone()
        if not script().spoke:
            steps = trainer.estimated_stepping_batches
            resumed = trainer.global_step if trainer.ckpt_path is not None and ablate.resume() is not None else None
            ablate.start(int(steps) if 0 < steps < math.inf else None, resumed)

    def on_train_batch_start(self, trainer, module, *_):
        if self._ends:
            raise SIGTERMException

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        whole_step = (batch_idx + 1) % trainer.accumulate_grad_batches == 0
        if not self._ends and whole_step and not trainer.is_last_batch and self._is_asked(trainer):
            self._save(trainer)
            self._ends = True

    def on_train_epoch_end(self, trainer, module):
        if self._ends:
            return
        self._ends = self._is_asked(trainer)
        if self._ends or (trainer.current_epoch + 1) % self._every == 0:
            self._save(trainer)

    @staticmethod
    def _is_asked(trainer):
        asked = ablate.should_stop()  # ranks hear of it one after the other, and must end at the same batch
        return trainer.strategy.reduce_boolean_decision(asked, all=False) if trainer.world_size > 1 else asked

    @staticmethod
    def _save(trainer):
        with ablate.saving(trainer.global_step, ".ckpt") as path:
            trainer.save_checkpoint(trainer.strategy.broadcast(str(path)))  # each rank calls it; it is one file
