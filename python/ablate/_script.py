# SPDX-License-Identifier: Apache-2.0
"""What a training script calls. In a trial it speaks to the worker; elsewhere it prints."""
import contextlib
import os
import pathlib
import shutil
import sys
import threading

from . import _files, _numbers, _params, _rank
from ._errors import Error
from ._events import LONGEST_LINE, Events, line_of
from ._stop import Stop

PNG = b"\x89PNG\r\n\x1a\n"
KEPT_CHECKPOINTS = 2  # of those that this package wrote: the one before the newest serves where the newest is damaged
VERSIONS_OF = ("torch", "torchvision", "numpy", "timm", "lightning", "pytorch_lightning", "transformers", "jax", "tensorflow")


class Script:
    """A script and what it was started with. `environment`: its variables, `output`: the file on which a trial speaks. Thread: any."""

    def __init__(self, environment, output=1):
        self._environment = environment
        self.in_trial = bool(environment.get("ABLATE_CONFIG")) and bool(environment.get("ABLATE_RUN_DIR"))
        self._events = Events(output) if self.in_trial else None
        self._lock = threading.RLock()
        self._config = None
        self._seed = None  # that the command line named
        self.spoke = False  # said something: start() comes before
        self._resumes = None  # the path, once it was asked for
        self._step = None
        self._told = set()  # paths of checkpoints that were told as they are
        self._written = []  # checkpoints of our own, the newest last
        self.stop = Stop()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)

    def _after_fork(self):
        self._lock = threading.RLock()  # who held it is not in this process

    def params(self, defaults, arguments=None):
        if self.in_trial:
            try:
                with self._lock:
                    if self._config is None:
                        self._config = _params.read_config(self._environment["ABLATE_CONFIG"])
                return _params.of_trial(self._config.get("params", {}), defaults)
            except Error as error:
                if _rank.is_first():  # the same would happen again
                    self._events.say("end", status="failed", reason=str(error), retryable=False)
                raise
        given = _params.script_arguments() if arguments is None else arguments
        if any(word in _params.HELP for word in given):
            print(_params.usage(defaults))
            sys.exit(0)
        try:
            values, seed = _params.of_command_line(given, defaults)
        except Error as error:
            if arguments is not None:
                raise
            print(f"{os.path.basename(sys.argv[0])}: {error}", file=sys.stderr)
            sys.exit(2)
        if seed is not None:
            self._seed = seed
        return values

    def seed(self, default):
        text = self._environment.get("ABLATE_SEED", "")
        if text:
            try:
                return int(text)
            except ValueError:
                raise Error(f"ABLATE_SEED={text}: not a whole number") from None
        return default if self._seed is None else self._seed

    def run_dir(self):
        return pathlib.Path(self._environment["ABLATE_RUN_DIR"]) if self.in_trial else pathlib.Path.cwd()

    def data(self, default):
        text = self._environment.get("ABLATE_DATA", "")
        if text:
            return pathlib.Path(text)
        if default is not None:
            return pathlib.Path(default)
        raise Error("no data: in a trial the sweep file's command.data names them and the worker's --data says where they are; elsewhere"
                    " set ABLATE_DATA, or give a default: ablate.data('FOLDER')")

    def device(self, default):
        text = self._environment.get("ABLATE_DEVICE", "")
        if text or default:
            return text or default
        torch = sys.modules.get("torch")
        return "cuda:0" if torch is not None and torch.cuda.is_available() else "cpu"

    def threads(self):
        text = self._environment.get("ABLATE_THREADS", "")
        if not text:
            return os.cpu_count() or 1
        try:
            return int(text)
        except ValueError:
            raise Error(f"ABLATE_THREADS={text}: not a whole number") from None

    def resume(self):
        text = self._environment.get("ABLATE_RESUME", "")
        if not text:
            return None
        path = pathlib.Path(text)
        if not path.exists():
            raise Error(f"ABLATE_RESUME={text}: no such file")
        with self._lock:
            if self._resumes is None:
                self._resumes = path
                if path.is_file() and _files.is_packed(path):
                    rank = "" if _rank.is_first() else f"-{os.getpid()}"  # each rank unpacks its own
                    self._resumes = _files.unpack(path, self.run_dir() / f"resumed{rank}")
            return self._resumes

    def start(self, total_steps, resumed_step, environment):
        keys = {}
        if total_steps is not None:
            keys["total_steps"] = _numbers.step_number(total_steps)
        if resumed_step is not None:
            keys["resumed_step"] = _numbers.step_number(resumed_step)
        with self._lock:
            if self.spoke:
                raise Error("start() comes once, before the first log() and checkpoint()")
            if self._resumes is not None and resumed_step is None:
                raise Error("start() needs resumed_step=…, the step of the checkpoint that resume() gave: the metrics up to it stay the run's")
            self.spoke = True
            if not _rank.is_first():
                return
            if self._events:
                self._events.say("start", v=1, **keys, environment={**_versions(), **environment})
            elif keys:
                print("  ".join(f"{name} {value}" for name, value in keys.items()), flush=True)

    def log(self, step, values):
        step, values = _numbers.step_number(step), _numbers.metrics(values)
        with self._lock:
            self._step = step
            if not values or not _rank.is_first():
                return
            self.spoke = True
            if self._events:
                self._say_metrics(step, {name: _numbers.in_json(value) for name, value in values.items()})
            else:
                print(f"step {step}  " + "  ".join(f"{name} {value:.6g}" for name, value in values.items()), flush=True)

    def _say_metrics(self, step, values):
        if len(line_of("metric", step=step, values=values)) <= LONGEST_LINE:
            self._events.say("metric", step=step, values=values)
        elif len(values) == 1:
            raise Error(f"metric name: {len(next(iter(values)))} characters are too many")
        else:
            names = list(values)
            for part in (names[:len(names) // 2], names[len(names) // 2:]):
                self._say_metrics(step, {name: values[name] for name in part})

    def probe(self, name, values, step, pictures):
        pictures = {key: pathlib.Path(path) for key, path in (pictures or {}).items()}
        for each in (name, *values, *pictures):
            if not isinstance(each, str) or not each or "/" in each:
                raise Error(f"probe {name}: invalid name {each!r}: expected text without a slash")
        values = {key: _numbers.in_json(value) for key, value in _numbers.metrics(values).items()}
        for path in pictures.values():
            try:
                with path.open("rb") as file:
                    is_png = file.read(len(PNG)) == PNG
            except OSError as error:
                raise Error(f"probe {name}: cannot read {path}: {error.strerror}") from error
            if not is_png:
                raise Error(f"probe {name}: {path} is not a PNG")
        with self._lock:
            step = self._step_of("probe", step)
            if not _rank.is_first():
                return
            self.spoke = True
            if not self._events:
                print(f"probe {name} (step {step})  " + "  ".join(f"{key} {value}" for key, value in values.items()), flush=True)
                return
            files = []
            for key, path in pictures.items():
                if not self._is_below_run(path):
                    target = self.run_dir() / f"{name}-{key}.png"
                    _files.copy(path, target)
                    path = target
                files.append({"name": key, "file": str(path.absolute())})
            found = {"probe": name, "values": values, "pictures": files}
            if len(line_of("probe", step=step, **found)) > LONGEST_LINE:  # which the worker would not read
                self._events.say("probe", step=step, path=str(_files.write_json(self.run_dir() / f"probe-{name}.json", found)))
            else:
                self._events.say("probe", step=step, **found)

    def checkpoint(self, path, step):
        path = pathlib.Path(path)
        with self._lock:
            step = self._step_of("checkpoint", step)
            if not path.exists():
                raise Error(f"checkpoint {path}: no such file")
            if not _rank.is_first():
                return
            if not self._events:
                self._tell(path, step)
            elif path.is_dir() or not self._is_below_run(path) or self._may_be_written_over(path):
                # the worker takes one file of the run's folder; one that is written over may be cut by a kill
                target = self._free_name(step, "" if path.is_dir() else path.suffix)
                (_files.pack if path.is_dir() else _files.copy)(path, target)
                self._tell_written(target, step)
            else:
                self._tell(path.absolute(), step)
                self._told.add(path.resolve())

    @contextlib.contextmanager
    def saving(self, step, suffix):
        with self._lock:
            step = self._step_of("checkpoint", step)
        folder = self.run_dir()
        part = folder / f"checkpoint-{step}.{os.getpid()}-{threading.get_ident()}{_files.PART}{suffix}"
        try:
            yield part
            if not _rank.is_first():
                return
            if not part.exists():
                raise Error(f"saving: nothing was written to {part} (does the library append an ending? give suffix='.npz')")
            with self._lock:
                target = self._free_name(step, suffix)
                (_files.pack if part.is_dir() else _files.settle)(part, target)
                self._tell_written(target, step)
        finally:
            if part.is_dir():
                shutil.rmtree(part, ignore_errors=True)
            else:
                part.unlink(missing_ok=True)

    def _free_name(self, step, suffix):
        """For a checkpoint: one that was told stays as it is until the next one is told, also of the same step."""
        target, number = self.run_dir() / f"checkpoint-{step}{suffix}", 1
        while target.exists():
            number += 1
            target = self.run_dir() / f"checkpoint-{step}.{number}{suffix}"
        return target

    def _step_of(self, what, step):
        if step is None and self._step is None:
            raise Error(f"{what}: no step; give step=…, or log() metrics before")
        return self._step if step is None else _numbers.step_number(step)

    def _is_below_run(self, path):
        return self.run_dir().resolve() in path.resolve().parents

    def _may_be_written_over(self, path):
        """`last.pt` is, and `epoch=3.ckpt` is not: what is kept has a number in its name."""
        return path.resolve() in self._told or not any(letter.isdigit() for letter in path.name)

    def _tell_written(self, target, step):
        self._tell(target, step)
        self._written.append(target)
        while len(self._written) > KEPT_CHECKPOINTS:
            self._written.pop(0).unlink(missing_ok=True)

    def _tell(self, path, step):
        self.spoke = True
        if self._events:
            self._events.say("checkpoint", step=step, path=str(path), sha256=_files.digest_on_disk(path))
        else:
            print(f"checkpoint {path} (step {step})", flush=True)


def _versions():
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name in VERSIONS_OF:
        version = getattr(sys.modules.get(name), "__version__", None)
        if version is not None:
            found[name] = str(version)
    return found


_made = None
_making = threading.Lock()


def script():
    """That of this process, made when it is first asked for."""
    global _made
    with _making:
        if _made is None:
            _made = Script(os.environ)
        return _made


def in_trial():
    """Whether a worker of ablate started this program."""
    return script().in_trial


def params(defaults=None, /, **more):
    """The trial's params, as a dict whose keys are attributes too. `defaults`: what the script has, by name (a mapping, keywords, or
    both): in a trial they stand for params that the sweep file does not have, and a param that is not among them is an Error. Elsewhere
    they are what the command line (`--lr=0.2`, `--optimiser.name=adam`, `--seed=3`) does not change. Without defaults everything is
    taken as it comes, and elsewhere from the command line alone."""
    return script().params({**(defaults or {}), **more})


def seed(default=0):
    """The trial's seed; elsewhere $ABLATE_SEED, `--seed` where `params` read it, or the default."""
    return script().seed(default)


def data(default=None):
    """The folder or file that the worker has under the name of `command.data`; elsewhere $ABLATE_DATA, or the default."""
    return script().data(default)


def device(default=None):
    """"cpu" or "cuda:0"; elsewhere the default, or what PyTorch, where it was imported, can use."""
    return script().device(default)


def threads():
    """The number of threads of the trial; elsewhere the number of processors."""
    return script().threads()


def run_dir():
    """The run's own folder: write there. Elsewhere the current one."""
    return script().run_dir()


def resume():
    """The newest checkpoint of an earlier attempt, as its path (a folder where a folder was told), or None: begin anew. Read it, and
    log the steps after its own."""
    return script().resume()


def start(total_steps=None, resumed_step=None, **environment):
    """Optional, before the first `log`: how many steps there will be (progress is shown of them), the step from which this run goes on
    (where `resume` gave a checkpoint), and what else the run's page should say of its environment."""
    script().start(total_steps, resumed_step, environment)


def log(step, values=None, /, **more):
    """Metrics at a step: `log(120, loss=0.3)`, `log(120, {"val/top1": 91.2})`. Values are numbers, also of NumPy or PyTorch, NaN and
    infinities. Throws: Error for anything else; then nothing of this call is said."""
    if values is None and not more:
        raise Error("log: no metrics; expected log(STEP, NAME=VALUE) or log(STEP, {NAME: VALUE})")
    script().log(step, {**(values or {}), **more})


def probe(name, values=None, /, *, step=None, pictures=None, **more):
    """What was found by looking into the model: `probe("heads", entropy=1.8, pictures={"maps": "maps.png"})`. Its values are stored with
    the run and fill columns (`probe: heads/entropy`), its pictures (PNG, at most 2 MiB together) beside. Said again, it takes the place of
    what was said before. Without `step` it is of the last one logged."""
    script().probe(name, {**(values or {}), **more}, step, pictures)


def checkpoint(path, step=None):
    """Tells of a checkpoint that was written: a file or a folder. `step`: that of the last `log` where nothing is said. A folder, a
    file outside of the run's folder, and one that may be written over (told a second time, or without a number in its name) are copied
    into the run's folder. Throws: Error for a file that is being written."""
    script().checkpoint(path, step)


def saving(step=None, suffix=""):
    """`with ablate.saving(step) as path: torch.save(state, path)`: a checkpoint that is whole or not there, and told. The newest two
    are kept. Of several ranks only the first one's stays."""
    return script().saving(step, suffix)


def should_stop():
    """Whether the trial was asked to stop (SIGTERM): write a checkpoint and return. From the first call on SIGTERM ends nothing by
    itself; call it once in the main thread before another asks."""
    script().stop.watch()
    return script().stop.asked
