#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a first build costs, and what the tests: of this tree and, in turn, of another one.

  bench/build.py [--before TREE] [--tests] [--jobs N] [--work FOLDER]

Configures the release preset in an empty folder without ccache, builds what `make demo` builds (the target `programs`) and prints
wall time, CPU-minutes (of compilers, linkers and npm) and the dearest steps. --tests: builds everything then, and runs what
`make test` runs. --before: a clone of another state, set up as this one is; both are built in one go and the ratio is printed.
The set-up must have run in each (`make setup`); nothing else should run beside.
"""
import argparse
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(command, **options):
    """Wall and CPU seconds of a command."""
    start, before = time.monotonic(), cpu_seconds()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"bench/build.py: {' '.join(map(str, command))} failed:\n{done.stdout[-3000:]}")
    return time.monotonic() - start, cpu_seconds() - before


def steps(build):
    """What Ninja did: (seconds, output), the longest first, and how many."""
    seen = {}
    for line in (build / ".ninja_log").read_text().splitlines()[1:]:
        start, end, _, output, _ = line.split("\t")
        seen[start, end] = (int(end) - int(start), output)
    return sorted(((ms / 1000, output) for ms, output in seen.values()), reverse=True)


def build_of(tree, folder, target, jobs, environment):
    return measured(["cmake", "--build", str(folder), "-j", str(jobs), *(["--target", target] if target else [])], cwd=tree, env=environment)


def bench(tree, options, name):
    """Prints what one tree costs. Returns: CPU-minutes of the programs."""
    work = pathlib.Path(tempfile.mkdtemp(prefix=f"ablate-build-{name}-", dir=options.work))
    environment = dict(os.environ, CCACHE_DISABLE="1")
    try:
        configured = measured(["cmake", "--preset", "release", "-B", str(work)], cwd=tree, env=environment)
        wall, cpu = build_of(tree, work, "programs", options.jobs, environment)
        wall, cpu = wall + configured[0], cpu + configured[1]
        done = steps(work)
        print(f"{name:8} programs   {len(done):4} steps   {cpu / 60:6.2f} CPU-min   {wall / 60:6.2f} min with {options.jobs} jobs")
        for seconds, output in done[:10]:
            print(f"{'':10}{seconds:6.1f} s  {output}")
        if options.tests:
            test_wall, test_cpu = build_of(tree, work, None, options.jobs, environment)
            print(f"{name:8} tests built           {test_cpu / 60:6.2f} CPU-min   {test_wall / 60:6.2f} min")
            test_wall, test_cpu = measured(["ctest", "--test-dir", str(work), "-j", str(options.jobs)], cwd=tree, env=environment)
            print(f"{name:8} tests run             {test_cpu / 60:6.2f} CPU-min   {test_wall / 60:6.2f} min")
        return cpu / 60
    finally:
        shutil.rmtree(work, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=pathlib.Path, help="a clone of another state, set up")
    parser.add_argument("--tests", action="store_true", help="build and run the tests as well")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--work", type=pathlib.Path, help="where to build [the folder for temporary files]")
    options = parser.parse_args()
    before = bench(options.before.resolve(), options, "before") if options.before else None
    after = bench(ROOT, options, "this")
    if before:
        print(f"this / before: {after / before:.2f} of the CPU time")


if __name__ == "__main__":
    main()
