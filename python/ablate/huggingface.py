# SPDX-License-Identifier: Apache-2.0
"""For the Trainer of Hugging Face's transformers:

    import ablate.huggingface

    trainer = Trainer(…, args=TrainingArguments(output_dir=ablate.run_dir(), save_strategy="epoch", seed=ablate.seed()),
                      callbacks=[ablate.huggingface.Callback()])
    trainer.train(resume_from_checkpoint=ablate.huggingface.resume())
"""
import os
import sys

import ablate
from ablate import _numbers
from ablate._script import script

try:
    from transformers import TrainerCallback
except ImportError as error:
    raise ablate.Error(f"ablate.huggingface needs transformers: pip install transformers accelerate ({error})") from error


def resume():
    """For `resume_from_checkpoint`: the checkpoint's folder of an earlier attempt, or None."""
    found = ablate.resume()
    return None if found is None else str(found)


class Callback(TrainerCallback):
    """Logs what the Trainer logs, under its names (`loss`, `eval_accuracy`), tells of the checkpoints that it saves, and stops it, with
    a checkpoint, when the trial is asked to. What is not one number (a list of scores by class, a text) is left out, and that is said once."""

    def __init__(self):
        self._left_out = set()  # names that were said
        ablate.should_stop()  # from here on SIGTERM is a flag

    def on_train_begin(self, args, state, control, **_):
        if not script().spoke:
            resumed = state.global_step if state.global_step > 0 and ablate.resume() is not None else None
            ablate.start(state.max_steps if state.max_steps > 0 else None, resumed)

    def on_log(self, args, state, control, logs=None, **_):
        if not state.is_world_process_zero or not logs:
            return
        values = {}
        for name, value in logs.items():
            try:
                values[name] = _numbers.number(name, value)
            except ablate.Error as error:  # other callbacks and the user's own metrics may log anything; a training does not end by it
                if name not in self._left_out:
                    print(f"ablate: left out: {error}", file=sys.stderr, flush=True)
                self._left_out.add(name)
        if values:
            ablate.log(state.global_step, values)

    def on_step_end(self, args, state, control, **_):
        if ablate.should_stop():
            control.should_save = True
            control.should_training_stop = True
        return control

    def on_save(self, args, state, control, **_):
        if state.is_world_process_zero:
            ablate.checkpoint(os.path.join(args.output_dir, f"checkpoint-{state.global_step}"), state.global_step)
