# SPDX-License-Identifier: Apache-2.0
"""The units of deploy/ are ones that systemd understands, with flags that the programs have."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from fleet import expect, say

DEPLOY, BIN = pathlib.Path(os.environ["ABLATE_SOURCE"], "deploy"), pathlib.Path(os.environ["ABLATE_BIN"])


def main():
    if not shutil.which("systemd-analyze"):
        say("skipped: no systemd-analyze here")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="ablate-units-") as folder:
        place = pathlib.Path(folder)
        for source in (*DEPLOY.glob("*.service"), DEPLOY / "ablate-worker-commands.conf"):
            text = source.read_text()
            words = re.search(r"^ExecStart=(/.*)$", text.replace("\\\n", " "), re.M)[1].split()
            usage = subprocess.run([words[0].replace("/opt/ablate/bin", str(BIN)), "--help"], capture_output=True, text=True, check=True).stdout
            for flag in filter(lambda word: word.startswith("--"), words):
                expect(f"{flag} " in usage, f"{source.name}: {flag}")
            text = text.replace("/opt/ablate/bin", str(BIN)).replace("Documentation=man:", "# ")  # not installed yet
            target = place / source.name
            if source.suffix == ".conf":
                target = place / "ablate-worker.service.d/commands.conf"
                verify(place)  # without it first
                target.parent.mkdir()
            target.write_text(text)
        verify(place)


def verify(place):
    units = sorted(map(str, place.glob("*.service")))
    done = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True)
    said = [line for line in done.stderr.splitlines() if "ablate" in line]
    expect(len(units) == 2 and done.returncode == 0 and not said, f"systemd understands the units {said or ''}")


main()
