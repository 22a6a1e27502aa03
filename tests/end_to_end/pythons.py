# SPDX-License-Identifier: Apache-2.0
"""Which Python runs a script that imports packages, and the package python/ablate for it, installed as its page says."""
import os
import pathlib
import shutil
import subprocess

from fleet import SOURCE, skip

DEPS = SOURCE / ".deps"


def python_with(*packages):
    """The first Python that has them (modules, by name); or a skip that says which are missing."""
    lacking = []
    for python in (os.environ.get("ABLATE_TESTS_PYTHON"), DEPS / "python-packages/bin/python", os.environ.get("ABLATE_PYTHON"),
                   DEPS / "python/bin/python", shutil.which("python3")):
        if not python or not pathlib.Path(python).exists():
            continue
        asked = "import importlib.util as u, sys; print(*[n for n in sys.argv[1:] if not u.find_spec(n)])"
        missing = subprocess.run([python, "-c", asked, *packages], capture_output=True, text=True)
        if missing.returncode == 0 and not missing.stdout.strip():
            return str(python)
        lacking.append(f"{python} lacks {missing.stdout.strip() or 'Python'}")
    skip(f"{'; '.join(lacking) or 'there is no Python'}: deploy/setup.sh --tests installs {', '.join(packages)}")


def install(python, folder):
    """`pip install ./python` into `folder`, without an index: it needs nothing, and writes nothing beside the sources."""
    def listed():
        return sorted(str(file) for file in (SOURCE / "python").rglob("*") if "__pycache__" not in file.parts)

    before = listed()
    done = subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-cache-dir",
                           "--target", folder / "site", SOURCE / "python"], capture_output=True, text=True)
    if done.returncode or listed() != before:
        raise AssertionError(f"pip install ./python: exit code {done.returncode}\n{done.stdout}{done.stderr}{set(listed()) - set(before)}")
    return folder / "site"


def path_of(site):
    """PYTHONPATH of scripts that import the package there, and torchvision."""
    return f"{site}{os.pathsep}{SOURCE / 'tests/end_to_end/python_site'}"
