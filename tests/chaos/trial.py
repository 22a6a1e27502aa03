# SPDX-License-Identifier: Apache-2.0
"""A command that chaos runs as a trial. What it says is a function of its params and seed, and before it says anything it writes into a
record of its own that it will: who reads a results file later knows what must be in it, and what cannot be."""
import hashlib
import json
import math
import os
import pathlib
import signal
import sys
import time
import zlib

FINITE = 1 << 20


def value(tag, seed, step, kind):
    """What a trial says of a step: exact in binary, and in no two trials the same."""
    if kind == "odd" and step % 7 == 3:
        return (math.nan, math.inf, -math.inf)[step // 7 % 3]
    return zlib.crc32(f"{tag}/{seed}/{step}".encode()) / FINITE


class Record:
    """What one program did, in order. A line is one write: it outlives the program, however that ends."""

    def __init__(self, folder, trial, attempt):
        path = pathlib.Path(folder) / f"{trial}-{attempt}-{os.getpid()}.jsonl"
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)

    def write(self, what, **facts):
        line = {"what": what, "ns": time.clock_gettime_ns(time.CLOCK_BOOTTIME), **facts}
        os.write(self.file, (json.dumps(line) + "\n").encode())


def say(**event):
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


class Stopped(Exception):
    pass


def stop(*_):
    raise Stopped


def checkpoint(folder, step):
    path = folder / f"step-{step}.json"
    text = json.dumps({"step": step})
    path.with_suffix(".part").write_text(text)
    path.with_suffix(".part").rename(path)
    say(event="checkpoint", step=step, path=path.name, sha256=hashlib.sha256(text.encode()).hexdigest())


def main():
    document = json.loads(pathlib.Path(os.environ["ABLATE_CONFIG"]).read_text())
    params, seed = document["params"], document["seed"]
    folder = pathlib.Path(os.environ["ABLATE_RUN_DIR"])
    trial, attempt = int(folder.parts[-2]), int(folder.parts[-1])
    kind, points = params["kind"], params["points"]
    record = Record(sys.argv[1], trial, attempt)
    resumed = 0
    if params["checkpoints"]:
        signal.signal(signal.SIGTERM, stop)
        if os.environ.get("ABLATE_RESUME"):
            resumed = json.loads(pathlib.Path(os.environ["ABLATE_RESUME"]).read_text())["step"]
    record.write("start", pid=os.getpid(), trial=trial, attempt=attempt, resumed=resumed)

    def end(code):
        record.write("end", code=code)
        os.fsync(record.file)
        sys.exit(code)

    step = resumed
    try:
        say(event="start", total_steps=points, **({"resumed_step": resumed} if resumed else {}))
        for step in range(resumed + 1, points + 1):
            said = {"value": value(params["tag"], seed, step, kind), "attempt": attempt}
            record.write("point", step=step, values=said)
            say(event="metric", step=step, values=said)
            if kind == "odd" and step == 2:
                record.write("repeated", step=step)
                say(event="metric", step=step, values={"value": -1})
            if params["chatter"]:
                print(f"{params['tag']} at step {step} " + "·" * params["chatter"])
            if params["checkpoints"] and step % params["checkpoints"] == 0:
                checkpoint(folder, step)
            time.sleep(params["pause_ms"] / 1000)
    except Stopped:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        record.write("stopped", step=step)
        say(event="end", status="stopped")
        end(0)
    except OSError as error:  # of a checkpoint: the machine's fault, and a program that knows says so
        say(event="end", status="failed", reason=f"cannot write a checkpoint: {error.strerror}", fault="disk", needed_bytes=4096)
        end(1)
    if kind == "fails":
        end(1)
    if kind == "flaky" and not (failed := pathlib.Path(sys.argv[1]) / f"{params['tag']}-{seed}.failed").exists():
        failed.touch()
        end(3)
    end(0)


if __name__ == "__main__":
    main()
