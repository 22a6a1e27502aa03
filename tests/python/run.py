#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py TEST ARGUMENTS…: runs it with the Python of the tests, where there is one, otherwise with that of PyTorch, otherwise with this
one. What a test needs and does not find it skips, and says so."""
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
DEPS = HERE.parents[1] / ".deps"
candidates = [os.environ.get("ABLATE_TESTS_PYTHON"), DEPS / "python-packages/bin/python", os.environ.get("ABLATE_PYTHON"), DEPS / "python/bin/python",
              sys.executable]
python = next(str(each) for each in candidates if each and pathlib.Path(each).exists())
print(f"with {python}", flush=True)
os.execv(python, [python, str(HERE / sys.argv[1]), *sys.argv[2:]])
