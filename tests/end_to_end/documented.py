# SPDX-License-Identifier: Apache-2.0
"""docs/walk-through.md: every command of its console blocks, in order, as it is printed. The images are a few that are made here, in the
format of CIFAR-10's binary version, and three rows of the table are trained, so that it takes seconds. What the page shows of an output without a number has to be in it.
And every example of docs/writing-a-sweep.md is planned, and every link between the pages followed."""
import os
import random
import re
import shutil
import subprocess

from fleet import BIN, SOURCE, Fleet, expect, say


def blocks(page):
    """(command, the lines that the page shows of its output) of each."""
    shown = []
    for block in re.findall(r"^```console\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            if line.startswith("$ "):
                shown.append((line[2:], []))
            elif shown:
                shown[-1][1].append(line)
    return shown


def make_images(folder):
    """50 records a batch: a label, and 32 x 32 pixels of three colours."""
    chance = random.Random(0)
    folder.mkdir()
    for name in [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]:
        records = b"".join(bytes([i % 10]) + chance.randbytes(3072) for i in range(50))
        (folder / name).write_bytes(records)


def cut_table(folder):
    """Three rows of the table, with its scales: what takes an hour takes seconds."""
    folder.mkdir()
    shutil.copy(SOURCE / "sweeps/papers/msf/scales.yaml", folder)
    lines = (SOURCE / "sweeps/papers/msf/table-1.yaml").read_text().splitlines(keepends=True)
    (folder / "table-1.yaml").write_text("".join(line for line in lines if not re.match(r"\s*- \{id: [c-q],", line)))


def words(line):
    return " ".join(line.split())


def anchor(heading):
    """As GitHub makes it."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.replace("`", "")).strip().lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def check_links():
    """Every link between the pages leads to a file, and to a heading that is there."""
    texts = {page: re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
             for page in [SOURCE / "README.md", *sorted((SOURCE / "docs").glob("*.md"))]}
    anchors = {page: {anchor(heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)} for page, text in texts.items()}
    astray = []
    for page, text in texts.items():
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            if link.startswith(("http:", "https:", "mailto:")):
                continue
            file, _, heading = link.partition("#")
            target = (page.parent / file).resolve() if file else page
            if not target.exists() or (heading and target in anchors and heading not in anchors[target]):
                astray.append(f"{page.name}: {link}")
    expect(not astray, f"links of {len(texts)} pages lead somewhere {astray or ''}")


def main():
    check_links()
    page = (SOURCE / "docs/walk-through.md").read_text()
    with Fleet("documented") as fleet:
        folder = fleet.home / "work"
        folder.mkdir()
        environment = dict(fleet.environment, PATH=f"{BIN}:{os.environ['PATH']}", ABLATE_HOME=str(fleet.home / "home"))
        del environment["ABLATE_SCHEDULER"]
        make_images(folder / "cifar-10-batches-bin")
        cut_table(fleet.home / "msf")
        commands = [(command.replace("msf/table-1 --scale", f"{fleet.home}/msf/table-1.yaml --scale"), lines) for command, lines in blocks(page)]
        expect(len(commands) > 15, f"{len(commands)} commands of the walk-through")
        try:
            for command, lines in commands:
                say(command)
                done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, text=True, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=300)
                expect(done.returncode == 0, f"exit code 0\n{done.stdout}")
                said = words(done.stdout)
                for line in lines:
                    if line.strip() and not re.search(r"[0-9…^─]", line):
                        expect(words(line) in said, f"it says: {line.strip()}\n{done.stdout if words(line) not in said else ''}")
        finally:
            subprocess.run([BIN / "ablate", "down"], env=environment, capture_output=True)

        say("the examples of docs/writing-a-sweep.md")
        examples = sorted((SOURCE / "docs/examples").glob("*.yaml"))
        expect(len(examples) > 5, f"{len(examples)} examples")
        environment["ABLATE_HOME"] = str(fleet.home / "nothing")
        for example in examples:
            done = subprocess.run([BIN / "ablate", "plan", example], env=environment, text=True, capture_output=True)
            expect(done.returncode == 0 and "distinct trials" in done.stdout, f"{example.name} is planned\n{done.stderr if done.returncode else ''}")


main()
