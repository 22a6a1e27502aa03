#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""python/ablate in a script: what a trial says to its worker, what is refused, and that a script without ablate stays one."""
import contextlib
import io
import json
import math
import multiprocessing
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
from unittest import mock

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "python"
sys.path.insert(0, str(PACKAGE))
from ablate import Error, Params, _files  # noqa: E402
from ablate._script import Script  # noqa: E402


class Folder(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.folder = pathlib.Path(kept.name)
        self.run_dir = self.folder / "run"
        self.run_dir.mkdir()
        self.output = self.folder / "stdout"

    def trial(self, params=None, **environment):
        """A script as a worker starts it; what it says goes to a file."""
        (self.folder / "config.json").write_text(json.dumps({"argv": [], "params": params or {}, "seed": 3}))
        file = os.open(self.output, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        self.addCleanup(os.close, file)
        return Script({"ABLATE_CONFIG": str(self.folder / "config.json"), "ABLATE_RUN_DIR": str(self.run_dir), "ABLATE_SEED": "3",
                       **environment}, file)

    def said(self):
        return [json.loads(line) for line in self.output.read_text().splitlines() if line.strip()]


class Array:
    """What libraries for numbers return, as far as `item` goes."""

    def __init__(self, *values):
        self.values, self.size = values, len(values)

    def item(self):
        if len(self.values) != 1:
            raise ValueError("can only convert an array of size 1")
        return self.values[0]


class ParamsTest(Folder):
    def test_params_of_the_trial_are_attributes_and_keys(self):
        params = self.trial({"lr": 0.1, "optimiser": {"name": "adam", "betas": [0.9, 0.99]}}).params({})
        self.assertEqual((params.lr, params["lr"], params.optimiser.name, params.optimiser["betas"]), (0.1, 0.1, "adam", [0.9, 0.99]))
        self.assertIsInstance(params, dict)
        self.assertIs(type(params.to_dict()["optimiser"]), dict)
        self.assertEqual(params.to_dict(), params)
        self.assertEqual(pickle.loads(pickle.dumps(params)), params)
        self.assertEqual(json.loads(json.dumps(params)), {"lr": 0.1, "optimiser": {"name": "adam", "betas": [0.9, 0.99]}})

    def test_a_param_that_is_not_there_names_the_nearest(self):
        params = Params({"lr": 0.1, "optimiser": {"name": "adam"}})
        with self.assertRaisesRegex(Error, r"^unknown param 'l'; did you mean 'lr'\?$"):
            params.l
        with self.assertRaisesRegex(Error, r"^unknown param 'optimiser.nam'; did you mean 'name'\?$"):
            params.optimiser["nam"]
        self.assertEqual(params.get("momentum", 0.9), 0.9)
        self.assertFalse(hasattr(params, "momentum"))

    def test_the_trial_rules_over_defaults(self):
        params = self.trial({"lr": 1, "optimiser": {"name": "adam"}}).params({"lr": 0.5, "epochs": 10, "optimiser": {"name": "sgd", "decay": 0}})
        self.assertEqual(params, {"lr": 1.0, "epochs": 10, "optimiser": {"name": "adam", "decay": 0}})
        self.assertIsInstance(params.lr, float)

    def test_a_param_that_the_script_does_not_have_is_refused(self):
        with self.assertRaisesRegex(Error, r"^the sweep file sets param 'learning', which this script does not have; did you mean 'learning_rate'\?$"):
            self.trial({"learning": 1}).params({"learning_rate": 0.5})
        self.assertEqual([(e["event"], e["status"], e["retryable"]) for e in self.said()], [("end", "failed", False)])
        with self.assertRaisesRegex(Error, "'optimiser.lr'"):
            self.trial({"optimiser": {"lr": 1}}).params({"optimiser": {"name": "sgd"}})

    def test_a_param_of_the_trial_is_what_its_default_is(self):
        defaults = {"lr": 0.5, "epochs": 10, "name": "sgd", "flip": False, "sizes": [1], "optimiser": {"decay": 0}, "any": None}
        for value, message in (({"epochs": "ten"}, "^the sweep file sets param 'epochs' to \"ten\"; expected a whole number, as the script's default 10$"),
                               ({"epochs": 1.5}, "to 1.5; expected a whole number"), ({"epochs": True}, "to true; expected a whole number"),
                               ({"lr": "0.1"}, "to \"0.1\"; expected a number, as the script's default 0.5$"), ({"lr": False}, "expected a number"),
                               ({"flip": 1}, "to 1; expected true or false"), ({"flip": "no"}, "expected true or false"),
                               ({"name": 3}, "to 3; expected a text, as the script's default 'sgd'; write it in quotes$"),
                               ({"name": ["a"]}, "expected a text, as the script's default 'sgd'$"), ({"sizes": 3}, "expected a list"),
                               ({"optimiser": "adam"}, "expected a mapping"),
                               ({"optimiser": {"decay": "x"}}, "'optimiser.decay' to \"x\"; expected a whole number")):
            with self.subTest(value), self.assertRaisesRegex(Error, message):
                self.trial(value).params(defaults)
        self.assertEqual({(e["event"], e["status"], e["retryable"]) for e in self.said()}, {("end", "failed", False)})
        given = {"lr": 1, "epochs": 20.0, "name": "3", "flip": True, "sizes": [], "optimiser": {"decay": 5}, "any": "x"}
        params = self.trial(given).params(defaults)
        self.assertEqual(params, given)
        self.assertEqual((type(params.lr), type(params.epochs)), (float, int))
        self.assertEqual(self.trial({"lr": None}).params(defaults).lr, None, "off, where the script takes that")

    def test_outside_the_command_line_rules_over_defaults(self):
        defaults = {"lr": 0.1, "epochs": 10, "name": "a", "flip": False, "sizes": [1], "optimiser": {"name": "sgd"}, "any": None}
        script = Script({})
        params = script.params(defaults, ["--lr=1", "--epochs", "3", "name=1e5", "--flip=true", "--sizes=[2, 3]", "--optimiser.name=adam",
                                          "--any=text", "--seed=7"])
        self.assertEqual(params, {"lr": 1.0, "epochs": 3, "name": "1e5", "flip": True, "sizes": [2, 3], "optimiser": {"name": "adam"}, "any": "text"})
        self.assertEqual(script.seed(0), 7)
        self.assertEqual(defaults["optimiser"], {"name": "sgd"})
        self.assertEqual(Script({}).params({}, ["--lr=0.5", "--name=x"]), {"lr": 0.5, "name": "x"})

    def test_what_the_command_line_has_wrong_is_one_line(self):
        for arguments, message in ((["--lrr=1"], r"^unknown param 'lrr'; did you mean 'lr'\?$"),
                                   (["--lr=fast"], "^param 'lr': 'fast' is not a number$"),
                                   (["--flip=1"], "^param 'flip': '1' is neither true nor false$"),
                                   (["--epochs=1.5"], "^param 'epochs': '1.5' is not a whole number$"),
                                   (["--sizes=2,3"], "^param 'sizes': '2,3' is not JSON of a list$"),
                                   (["--lr"], "^--lr has no value; expected --lr=VALUE$"),
                                   (["--lr.a=1"], "^unknown param 'lr.a'"),
                                   (["train"], "^unexpected argument 'train'; expected --NAME=VALUE$")):
            with self.subTest(arguments), self.assertRaisesRegex(Error, message):
                Script({}).params({"lr": 0.1, "flip": False, "epochs": 1, "sizes": [1]}, arguments)

    def test_a_configuration_that_cannot_be_read_is_named(self):
        script = self.trial()
        (self.folder / "config.json").write_text('{"params": ')
        with self.assertRaisesRegex(Error, r"config.json: not a trial's JSON"):
            script.params({})
        (self.folder / "config.json").unlink()
        with self.assertRaisesRegex(Error, r"config.json: cannot be read: No such file"):
            script.params({})

    def test_without_params_it_says_where_they_come_from(self):
        with self.assertRaisesRegex(Error, "unknown param 'lr'; there are none: in a trial they come from the sweep file's command.params"):
            Script({}).params({}, []).lr


class LogTest(Folder):
    def test_metrics_are_lines_of_json(self):
        script = self.trial()
        script.log(1, {"val/top1": 91.25, "loss": 1})
        script.log(2.0, {"loss": math.nan, "grad": -math.inf, "norm": math.inf, "val/top1": Array(0.5), "n": Array(7)})
        self.assertEqual(self.said(), [
            {"event": "metric", "step": 1, "values": {"val/top1": 91.25, "loss": 1.0}},
            {"event": "metric", "step": 2, "values": {"loss": "NaN", "grad": "-Infinity", "norm": "Infinity", "val/top1": 0.5, "n": 7.0}}])

    def test_digits_are_kept(self):
        self.trial().log(1, {"a": 0.1 + 0.2, "b": 5e-324, "c": 1.7976931348623157e308})
        self.assertEqual(self.said()[0]["values"], {"a": 0.1 + 0.2, "b": 5e-324, "c": 1.7976931348623157e308})

    def test_what_is_not_a_number_is_refused_and_nothing_is_said(self):
        script = self.trial()
        for value, message in (("0.5", r"metric 'acc': '0.5' \(str\) is not a number"), (True, r"True \(bool\)"), (None, r"None \(NoneType\)"),
                               (Array(1, 2), "metric 'acc': 2 numbers; expected one"), ([1], r"\[1\] \(list\)"), (10**400, "beyond what a double holds"),
                               (1j, "complex"), (Array(True), r"True \(bool\)")):
            with self.subTest(value=value), self.assertRaisesRegex(Error, message):
                script.log(1, {"good": 1, "acc": value})
        for name in ("", 1, "\ud800"):
            with self.subTest(name=name), self.assertRaisesRegex(Error, "metric name"):
                script.log(1, {name: 1})
        for step in (-1, 1.5, 2**32, math.nan, True, "1", None):
            with self.subTest(step=step), self.assertRaisesRegex(Error, "step: .* is not a whole number from 0"):
                script.log(step, {"acc": 1})
        self.assertEqual(self.said(), [])

    def test_thousands_of_metrics_are_several_lines(self):
        values = {f"layer/{i}/{'x' * 100}": i for i in range(5000)}
        self.trial().log(4, values)
        lines = self.output.read_bytes().splitlines()
        self.assertGreater(len(self.said()), 1)
        self.assertLess(max(map(len, lines)), 256 << 10)
        self.assertEqual({name: value for each in self.said() for name, value in each["values"].items()}, values)

    def test_a_line_that_the_script_has_begun_is_behind_a_carriage_return(self):
        script, kept = self.trial(), os.dup(1)
        with open(self.output, "a") as stdout, contextlib.redirect_stdout(stdout):
            print("epoch 1", end="")
            script.log(1, {"acc": 1})
            print("done")
        os.close(kept)
        self.assertEqual(self.output.read_text(newline="") if sys.version_info >= (3, 13) else self.output.read_bytes().decode(),
                         'epoch 1\r{"event": "metric", "step": 1, "values": {"acc": 1.0}}\ndone\n')

    def test_threads_write_whole_lines(self):
        script = self.trial()
        values = {f"metric {i} {'y' * 50}": i for i in range(200)}
        threads = [threading.Thread(target=lambda k=k: [script.log(k * 100 + i, values) for i in range(20)]) for k in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        self.assertEqual(sorted(each["step"] for each in self.said()), sorted(k * 100 + i for k in range(8) for i in range(20)))

    def test_a_worker_that_is_gone_is_an_error(self):
        ours, theirs = os.pipe()
        script = self.trial()
        gone = Script({"ABLATE_CONFIG": str(self.folder / "config.json"), "ABLATE_RUN_DIR": str(self.run_dir)}, theirs)
        os.close(ours)
        os.close(theirs)
        script.log(1, {"acc": 1})
        with self.assertRaisesRegex(Error, "the worker does not hear this trial: Broken pipe"):
            gone.log(1, {"acc": 1})

    def test_a_full_pipe_is_waited_for(self):
        ours, theirs = os.pipe()
        os.set_blocking(theirs, False)
        self.trial()
        script = Script({"ABLATE_CONFIG": str(self.folder / "config.json"), "ABLATE_RUN_DIR": str(self.run_dir)}, theirs)
        os.close(theirs)
        heard = []

        def read():
            with open(ours, "rb") as pipe:
                heard.append(pipe.read())

        reader = threading.Thread(target=read)
        values = {f"{i} {'z' * 80}": 1.0 for i in range(1500)}
        writer = threading.Thread(target=lambda: [script.log(step, values) for step in range(3)])
        writer.start()
        reader.start()
        writer.join()
        os.close(script._events._file)
        reader.join()
        self.assertEqual([json.loads(line)["step"] for line in heard[0].split(b"\n") if line], [0, 1, 2])

    def test_only_the_first_rank_speaks(self):
        for environment in ({"RANK": "1"}, {"LOCAL_RANK": "2"}, {"RANK": "8", "LOCAL_RANK": "0"}):
            with self.subTest(environment), mock.patch.dict(os.environ, environment):
                script = self.trial()
                script.log(1, {"acc": 1})
                with script.saving(None, "") as path:
                    path.write_text("state")
                with self.assertRaises(Error):
                    script.log(1, {"acc": "no number"})
        self.assertEqual((self.said(), list(self.run_dir.iterdir())), ([], []))
        with mock.patch.dict(os.environ, {"RANK": "0", "LOCAL_RANK": "0"}):
            self.trial().log(1, {"acc": 1})
        self.assertEqual(len(self.said()), 1)

    def test_outside_it_prints_for_people(self):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            Script({}).log(12, {"loss": 0.123456789, "acc": math.nan})
        self.assertEqual(printed.getvalue(), "step 12  loss 0.123457  acc nan\n")

    def test_start_says_how_many_steps_and_where_it_goes_on(self):
        script = self.trial()
        script.start(100, None, {"optimiser": "sgd"})
        start = self.said()[0]
        self.assertEqual((start["event"], start["v"], start["total_steps"], start["environment"]["optimiser"]), ("start", 1, 100, "sgd"))
        self.assertNotIn("resumed_step", start)
        with self.assertRaisesRegex(Error, "start.. comes once, before the first log"):
            script.start(100, None, {})


class ProbeTest(Folder):
    PNG = b"\x89PNG\r\n\x1a\n and the rest"

    def test_values_and_pictures_are_said_and_pictures_are_brought_into_the_run(self):
        script = self.trial()
        inside, outside = self.run_dir / "maps.png", self.folder / "else.png"
        for file in (inside, outside):
            file.write_bytes(self.PNG)
        script.log(5, {"acc": 1})
        script.probe("heads", {"entropy": Array(1.5), "odd": math.nan}, None, {"maps": str(inside), "other": outside})
        said = self.said()[1]
        self.assertEqual(said | {"pictures": []}, {"event": "probe", "step": 5, "probe": "heads", "values": {"entropy": 1.5, "odd": "NaN"}, "pictures": []})
        self.assertEqual(said["pictures"], [{"name": "maps", "file": str(inside)}, {"name": "other", "file": str(self.run_dir / "heads-other.png")}])
        self.assertEqual((self.run_dir / "heads-other.png").read_bytes(), self.PNG)

    def test_what_is_wrong_is_said_and_nothing_of_it_told(self):
        script = self.trial()
        text = self.run_dir / "text.png"
        text.write_text("none")
        for values, step, pictures, name, words in (({"a": 1}, None, None, "p", "no step"), ({"a": "x"}, 1, None, "p", "a"), ({}, 1, None, "a/b", "slash"),
                                                    ({"a/b": 1}, 1, None, "p", "slash"), ({}, 1, {"x": text}, "p", "is not a PNG"), ({}, 1, {"x/y": text}, "p", "x/y.*slash"),
                                                    ({3: 1}, 1, None, "p", "invalid name 3: expected text"),
                                                    ({}, 1, {"x": self.run_dir / "gone.png"}, "p", "cannot read .*gone.png: No such file")):
            with self.assertRaisesRegex(Error, words):
                script.probe(name, values, step, pictures)
        self.assertFalse(self.output.exists() and self.said())

    def test_thousands_of_values_are_told_as_a_file(self):
        values = {f"layer {i} {'x' * 100}": i / 7 for i in range(5000)}
        self.trial().probe("layers", values, 3, None)
        said, = self.said()
        self.assertEqual(said, {"event": "probe", "step": 3, "path": str(self.run_dir / "probe-layers.json")})
        self.assertEqual(json.loads((self.run_dir / "probe-layers.json").read_text()), {"probe": "layers", "values": values, "pictures": []})

    def test_elsewhere_it_prints(self):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            Script({}).probe("heads", {"entropy": 1.5}, 3, None)
        self.assertEqual(printed.getvalue(), "probe heads (step 3)  entropy 1.5\n")


class CheckpointTest(Folder):
    def test_a_checkpoint_is_whole_and_the_newest_two_are_kept(self):
        script = self.trial()
        for step in (1, 2, 3):
            script.log(step, {"acc": step})
            with script.saving(None, ".pt") as path:
                self.assertEqual(path.suffix, ".pt")
                path.write_text(f"state {step}")
        told = [each for each in self.said() if each["event"] == "checkpoint"]
        self.assertEqual([each["step"] for each in told], [1, 2, 3])
        self.assertEqual(sorted(each.name for each in self.run_dir.iterdir()), ["checkpoint-2.pt", "checkpoint-3.pt"])
        self.assertEqual((told[2]["path"], told[2]["sha256"]), (str(self.run_dir / "checkpoint-3.pt"), _files.sha256_of(self.run_dir / "checkpoint-3.pt")))

    def test_what_fails_while_it_is_written_leaves_the_one_before(self):
        script = self.trial()
        with script.saving(5, "") as path:
            path.write_text("whole")
        with self.assertRaises(OSError), script.saving(5, "") as path:
            path.write_text("ha")
            raise OSError(28, "No space left on device")
        with self.assertRaisesRegex(Error, "nothing was written to .*checkpoint-6"), script.saving(6, ""):
            pass
        self.assertEqual([each.name for each in self.run_dir.iterdir()], ["checkpoint-5"])
        with script.saving(5, "") as path:
            path.write_text("again")
        self.assertEqual((self.run_dir / "checkpoint-5.2").read_text(), "again")
        self.assertEqual((self.run_dir / "checkpoint-5").read_text(), "whole")
        self.assertEqual(len(self.said()), 2)

    def test_a_file_that_is_written_over_stays_as_it_was_told(self):
        script, file = self.trial(), self.run_dir / "last.pt"
        file.write_text("whole")
        script.checkpoint(file, 1)
        file.write_text("cut")  # in place, and killed before it is told
        told, = self.said()
        self.assertEqual(pathlib.Path(told["path"]).read_text(), "whole")
        self.assertEqual(_files.sha256_of(told["path"]), told["sha256"])

    def test_a_file_that_is_written_while_it_is_read_is_not_told(self):
        script, read = self.trial(), _files.sha256_of

        def written_meanwhile(path):
            digest = read(path)
            with open(path, "a") as file:
                file.write("more")
            return digest

        for name in ("state-1.pt", "last.pt"):
            file = self.run_dir / name
            file.write_text("half")
            with self.subTest(name), mock.patch.object(_files, "sha256_of", written_meanwhile), \
                    mock.patch("shutil.copyfile", lambda path, _: written_meanwhile(path)), \
                    self.assertRaisesRegex(Error, f"{name} changed while it was read"):
                script.checkpoint(file, 1)
        self.assertEqual(self.said(), [])
        self.assertEqual(sorted(each.name for each in self.run_dir.iterdir()), ["last.pt", "state-1.pt"])
        script.checkpoint(self.run_dir / "state-1.pt", 1)
        self.assertEqual(self.said()[0]["path"], str(self.run_dir / "state-1.pt"))

    def test_a_file_of_the_run_is_told_as_it_is_and_copied_once_it_is_written_over(self):
        script, file = self.trial(), self.run_dir / "model-v1.pt"
        for step in (1, 2):
            file.write_text(f"state {step}")
            script.checkpoint(file, step)
        file.write_text("cut")
        first, second = self.said()
        self.assertEqual(first["path"], str(file))
        self.assertEqual(pathlib.Path(second["path"]).read_text(), "state 2")
        self.assertEqual(_files.sha256_of(second["path"]), second["sha256"])

    def test_a_file_elsewhere_is_copied_into_the_run(self):
        script, file = self.trial(), self.folder / "mine.ckpt"
        file.write_text("state")
        script.checkpoint(str(file), 7)
        self.assertEqual(pathlib.Path(self.said()[0]["path"]), self.run_dir / "checkpoint-7.ckpt")
        self.assertEqual((self.run_dir / "checkpoint-7.ckpt").read_text(), "state")

    def test_a_folder_is_one_file_and_a_folder_again(self):
        folder = self.run_dir / "checkpoint-9"
        (folder / "deep").mkdir(parents=True)
        (folder / "deep/state.json").write_text("{}")
        (folder / "model.bin").write_bytes(b"\0" * 3_000_000)
        self.trial().checkpoint(folder, 9)
        told = self.said()[0]
        self.assertTrue(pathlib.Path(told["path"]).is_file())
        self.assertEqual(_files.sha256_of(told["path"]), told["sha256"])
        next_run = self.folder / "next"
        next_run.mkdir()
        back = Script({"ABLATE_CONFIG": "x", "ABLATE_RUN_DIR": str(next_run), "ABLATE_RESUME": told["path"]}).resume()
        self.assertEqual(sorted(str(each.relative_to(back)) for each in back.rglob("*")), ["deep", "deep/state.json", "model.bin"])
        self.assertEqual((back / "model.bin").stat().st_size, 3_000_000)
        whole = pathlib.Path(told["path"]).read_bytes()
        for size in (600, 20_000, 3_001_000, len(whole) - 12_000):
            pathlib.Path(told["path"]).write_bytes(whole[:size])
            with self.subTest(size), self.assertRaisesRegex(Error, "not a whole checkpoint"):
                _files.unpack(pathlib.Path(told["path"]), next_run / "cut")
            self.assertFalse((next_run / "cut").exists())

    def test_a_packed_folder_writes_nothing_outside(self):
        import tarfile
        for name, kind in (("../evil", tarfile.REGTYPE), ("/evil", tarfile.REGTYPE), ("content/../../evil", tarfile.REGTYPE),
                           ("content/link", tarfile.SYMTYPE)):
            with tarfile.open(self.folder / "evil.tar", "w") as archive:
                archive.addfile(tarfile.TarInfo(_files.FIRST))
                member = tarfile.TarInfo(name)
                member.type, member.linkname = kind, "/etc"
                archive.addfile(member)
                archive.addfile(tarfile.TarInfo(_files.LAST))
            with self.subTest(name), self.assertRaisesRegex(Error, "is not a file of a checkpoint's folder"):
                _files.unpack(self.folder / "evil.tar", self.folder / "out")

    def test_resume_gives_a_path_and_start_then_needs_its_step(self):
        self.assertIsNone(self.trial().resume())
        self.assertIsNone(self.trial(ABLATE_RESUME="").resume())
        state = self.folder / "state.pt"
        state.write_text("state")
        script = self.trial(ABLATE_RESUME=str(state))
        self.assertEqual(script.resume(), state)
        with self.assertRaisesRegex(Error, "start.. needs resumed_step"):
            script.start(100, None, {})
        script.start(100, 40, {})
        self.assertEqual(self.said()[0]["resumed_step"], 40)
        with self.assertRaisesRegex(Error, "no such file"):
            self.trial(ABLATE_RESUME=str(self.folder / "gone")).resume()

    def test_a_checkpoint_without_a_step_is_refused(self):
        with self.assertRaisesRegex(Error, "checkpoint: no step"):
            self.trial().checkpoint(__file__, None)


class PlacesTest(Folder):
    def test_what_the_worker_says(self):
        script = self.trial(ABLATE_DATA="/data/cifar", ABLATE_DEVICE="cuda:0", ABLATE_THREADS="4")
        self.assertEqual((script.seed(9), script.data(None), script.device(None), script.threads(), script.run_dir()),
                         (3, pathlib.Path("/data/cifar"), "cuda:0", 4, self.run_dir))

    def test_elsewhere_the_defaults(self):
        script = Script({})
        self.assertEqual((script.in_trial, script.seed(9), script.data("d"), script.device("cpu"), script.run_dir()),
                         (False, 9, pathlib.Path("d"), "cpu", pathlib.Path.cwd()))
        with self.assertRaisesRegex(Error, "no data: in a trial the sweep file's command.data names them"):
            script.data(None)
        with self.assertRaisesRegex(Error, "ABLATE_SEED=x: not a whole number"):
            Script({"ABLATE_SEED": "x"}).seed(0)


def as_script(text, *arguments, **options):
    """Runs it as a script of its own."""
    return subprocess.Popen([sys.executable, "-c", text, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, "PYTHONPATH": str(PACKAGE), **options})


class StopTest(unittest.TestCase):
    def test_sigterm_is_a_flag_once_it_was_asked_for(self):
        script = as_script("import ablate, time\nassert not ablate.should_stop()\nprint('ready', flush=True)\n"
                           "while not ablate.should_stop(): time.sleep(0.01)\nprint('saved')")
        self.assertEqual(script.stdout.readline(), "ready\n")
        script.terminate()
        self.assertEqual((script.communicate()[0], script.returncode), ("saved\n", 0))

    def test_who_never_asks_ends_by_it(self):
        script = as_script("import ablate, time\nprint(ablate.seed(), flush=True)\ntime.sleep(600)")
        script.stdout.readline()
        script.terminate()
        script.communicate()
        self.assertEqual(script.returncode, -signal.SIGTERM)

    def test_a_handler_that_was_there_is_called(self):
        script = as_script("import ablate, signal, time\nsignal.signal(signal.SIGTERM, lambda *_: print('theirs', flush=True))\nablate.should_stop()\n"
                           "print('ready', flush=True)\nwhile not ablate.should_stop(): time.sleep(0.01)")
        self.assertEqual(script.stdout.readline(), "ready\n")
        script.terminate()
        self.assertEqual(script.communicate()[0], "theirs\n")

    def test_processes_of_a_pool_end_by_sigterm_from_their_first_moment(self):
        script = as_script("import ablate, multiprocessing, time\nablate.should_stop()\nfor _ in range(100):\n"
                           "  process = multiprocessing.get_context('fork').Process(target=time.sleep, args=(600,))\n"
                           "  process.start(); process.terminate(); process.join(); assert process.exitcode == -15, process.exitcode\n"
                           "print(ablate.should_stop())")
        self.assertEqual(script.communicate(), ("False\n", ""))

    def test_a_thread_cannot_be_the_first_to_ask(self):
        script = as_script("import ablate, threading\nerrors = []\ndef ask():\n  try: ablate.should_stop()\n  except ablate.Error as e: print(e)\n"
                           "t = threading.Thread(target=ask); t.start(); t.join()\nablate.should_stop()\nt = threading.Thread(target=ask); t.start(); t.join()")
        self.assertRegex(script.communicate()[0], r"\Ashould_stop\(\) was first called in a thread.*\n\Z")

    def test_a_script_of_the_command_line(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "train.py")
            file.write_text("import ablate\np = ablate.params(lr=0.1, epochs=2)\nprint(p.lr, ablate.seed())\n")
            run = lambda *words: subprocess.run([sys.executable, str(file), *words], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(PACKAGE)})
            self.assertEqual(run().stdout, "0.1 0\n")
            self.assertEqual(run("--lr=2", "--seed", "5").stdout, "2.0 5\n")
            wrong = run("--lrr=2")
            self.assertEqual((wrong.returncode, wrong.stderr), (2, "train.py: unknown param 'lrr'; did you mean 'lr'?\n"))
            self.assertIn("--epochs=2", run("--help").stdout)


class AdapterTest(unittest.TestCase):
    def test_an_adapter_without_its_library_says_what_to_install(self):
        for adapter, libraries, wanted in (("lightning", ("lightning", "pytorch_lightning"), "ablate.lightning needs Lightning, from 2.0 on: pip install lightning"),
                                           ("huggingface", ("transformers",), "ablate.huggingface needs transformers: pip install transformers accelerate")):
            script = as_script(f"import sys\nsys.modules.update(dict.fromkeys({libraries}))\nimport ablate\ntry:\n  import ablate.{adapter}\n"
                               "except ablate.Error as error:\n  print(error)")
            out, error = script.communicate()
            self.assertTrue(out.startswith(wanted), out + error)

    def test_what_is_not_a_number_among_a_trainers_logs_is_left_out_and_said_once(self):
        library = "import sys, types\nsys.modules['transformers'] = types.SimpleNamespace(TrainerCallback=object)\n"
        script = as_script(library + "import ablate.huggingface\ncallback = ablate.huggingface.Callback()\n"
                           "state = lambda step: types.SimpleNamespace(is_world_process_zero=True, global_step=step)\n"
                           "for step in (1, 2):\n  callback.on_log(None, state(step), None, {'loss': 0.5, 'f1': [0.1, 0.2], 'note': 'x', 'on': True})\n"
                           "callback.on_log(None, state(3), None, {'f1': [0.1]})")
        out, error = script.communicate()
        self.assertEqual(out, "step 1  loss 0.5\nstep 2  loss 0.5\n")
        self.assertEqual(error.splitlines(), ["ablate: left out: metric 'f1': [0.1, 0.2] (list) is not a number",
                                              "ablate: left out: metric 'note': 'x' (str) is not a number",
                                              "ablate: left out: metric 'on': True (bool) is not a number"])


class ForkTest(Folder):
    def test_a_child_that_was_forked_while_a_thread_spoke_speaks(self):
        script = self.trial()
        holds, enough = threading.Event(), threading.Event()

        def hold():
            with script._lock, script._events._lock:
                holds.set()
                enough.wait()

        holder = threading.Thread(target=hold)
        holder.start()
        holds.wait()
        child = multiprocessing.get_context("fork").Process(target=script.log, args=(1, {"acc": 1}))
        child.start()
        child.join(60)
        enough.set()
        holder.join()
        self.assertEqual((child.exitcode, len(self.said())), (0, 1))


class ArrayTest(Folder):
    """Of the libraries themselves, where they are."""

    def numbers(self, library, make):
        script = self.trial()
        script.log(make(3), {"a": make(0.5), "b": make([0.25])})
        self.assertEqual(self.said(), [{"event": "metric", "step": 3, "values": {"a": 0.5, "b": 0.25}}])
        with self.assertRaisesRegex(Error, "metric 'a': "):
            script.log(1, {"a": make([1.0, 2.0])})
        with self.assertRaisesRegex(Error, "metric 'a': True"):
            script.log(1, {"a": make(True)})

    def test_numpy(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("NumPy is not installed")
        self.numbers(numpy, numpy.array)
        self.output.unlink()
        self.trial().log(numpy.int64(2), {"a": numpy.float32(0.1), "b": numpy.longdouble(1), "c": numpy.float16("inf"), "d": numpy.uint8(7)})
        self.assertEqual(self.said()[0]["values"], {"a": 0.10000000149011612, "b": 1.0, "c": "Infinity", "d": 7.0})

    def test_torch(self):
        try:
            import torch
        except ImportError:
            self.skipTest("PyTorch is not installed")
        self.numbers(torch, torch.tensor)
        self.output.unlink()
        self.trial().log(1, {"a": torch.nn.Parameter(torch.tensor(1.5)), "b": torch.tensor(0.5, dtype=torch.bfloat16)})
        self.assertEqual(self.said()[0]["values"], {"a": 1.5, "b": 0.5})


if __name__ == "__main__":
    unittest.main()
