# SPDX-License-Identifier: Apache-2.0
"""One side of a benchmark: a program that is told what to do, a line each, and answers with the seconds that it took."""
import os
import pathlib
import subprocess
import sys

BUILD = pathlib.Path(os.environ.get("ABLATE_BENCH", pathlib.Path(__file__).resolve().parents[1] / "build" / "bench"))


def refuse(why):
    print(f"bench.py: {why}", file=sys.stderr)
    sys.exit(2)


def built(name, folder=BUILD):
    """The path of a program of ours."""
    if not (folder / name).exists():
        refuse(f"no {folder / name}: build the target {name}, or set ABLATE_BENCH to the folder bench/ of a build")
    return folder / name


def trainer(folder=BUILD):
    return built("ablate-trainer", folder.parent / "bin")


class Server:
    def __init__(self, *command, preload=None):
        environment = dict(os.environ, **({"LD_PRELOAD": preload} if preload else {}))
        self.process = subprocess.Popen([*map(str, command)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def __call__(self, request):
        try:
            self.process.stdin.write(f"{request}\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            sys.exit(self.process.wait() or 1)  # it has said why
        return float(answer)
