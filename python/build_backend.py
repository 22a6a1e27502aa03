# SPDX-License-Identifier: Apache-2.0
"""Makes the wheel of this folder for pip (PEP 517, 660) with the standard library alone: `pip install ./python` needs no network for it, and
writes nothing into the folder, which may be an installed tree that is not one's own."""
import base64
import hashlib
import pathlib
import re
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
DATE = (2026, 1, 1, 0, 0, 0)  # the same sources are the same wheel


def _project():
    text = (HERE / "pyproject.toml").read_text(encoding="utf-8")
    return {key: re.search(rf'^{key} = "(.*)"$', text, re.MULTILINE).group(1) for key in ("name", "version", "description", "requires-python")}


def _metadata():
    project = _project()
    return (f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\nSummary: {project['description']}\nLicense: Apache-2.0\n"
            f"Requires-Python: {project['requires-python']}\nProvides-Extra: notebook\nRequires-Dist: pandas; extra == 'notebook'\n")


def _wheel(folder, files):
    """Writes the wheel with these files (name → bytes), and returns its name."""
    project = _project()
    stem = f"{project['name']}-{project['version']}"
    info = f"{stem}.dist-info"
    files = {**files, f"{info}/METADATA": _metadata().encode(), f"{info}/top_level.txt": b"ablate\n",
             f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: ablate\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    record = []
    name = f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in files.items():
            wheel.writestr(zipfile.ZipInfo(path, DATE), data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={digest},{len(data)}\n")
        wheel.writestr(zipfile.ZipInfo(f"{info}/RECORD", DATE), "".join(record) + f"{info}/RECORD,,\n")
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return _wheel(wheel_directory, {f"ablate/{file.name}": file.read_bytes() for file in sorted((HERE / "ablate").glob("*.py"))})


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return _wheel(wheel_directory, {"ablate.pth": f"{HERE}\n".encode()})


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("the package is installed from its folder: pip install ./python")
