# SPDX-License-Identifier: Apache-2.0
"""Checkpoints as files: written whole or not at all, a folder as one file, and back."""
import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import tarfile

from ._errors import Error

PIECE = 1 << 20
PART = ".part"  # ending of what is not finished
FIRST, LAST = "ablate-folder", "ablate-folder-end"  # members around a packed folder: how it is known again, and known to be whole


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while True:
            piece = file.read(PIECE)
            if not piece:
                return digest.hexdigest()
            digest.update(piece)


@contextlib.contextmanager
def unchanged(path):
    """Around code that reads a file which others write. Throws: Error if the file changed meanwhile: what was read may be a mix of two versions."""
    before = _mark(path)
    yield
    if _mark(path) != before:
        raise Error(f"{path} changed while it was read; report a file when it is complete, and write it again only after that call returns")


def _mark(path):
    found = os.stat(path)
    return found.st_ino, found.st_size, found.st_mtime_ns


def digest_on_disk(path):
    """The SHA-256 of a file that others wrote, on disk from then on: who is told of it may resume from it after a power cut."""
    with unchanged(path):
        with open(path, "rb") as file:
            os.fsync(file.fileno())
        return sha256_of(path)


def settle(part, path):
    """Gives a finished file its name: on disk before, and there at once."""
    with open(part, "rb+") as file:
        os.fsync(file.fileno())
    os.replace(part, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # not every file system has it; the file itself is on disk
            os.fsync(folder)
    finally:
        os.close(folder)


def pack(folder, path):
    """The folder as one file, without compression. Throws: OSError; then there is no file."""
    part = path.with_name(path.name + PART)
    try:
        with tarfile.open(part, "w", format=tarfile.PAX_FORMAT) as archive:
            archive.addfile(tarfile.TarInfo(FIRST))
            archive.add(folder, arcname="content")
            archive.addfile(tarfile.TarInfo(LAST))
        settle(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def is_packed(path):
    try:
        with tarfile.open(path, "r:") as archive:
            first = archive.next()
            return first is not None and first.name == FIRST
    except (tarfile.TarError, OSError, EOFError):
        return False


def unpack(path, folder):
    """The folder that `pack` was given. Throws: Error for a file that is cut, or holds what `pack` does not write."""
    part = folder.with_name(folder.name + PART)
    shutil.rmtree(part, ignore_errors=True)
    whole = False
    try:
        with tarfile.open(path, "r:") as archive:
            for member in archive:
                name = pathlib.PurePosixPath(member.name)
                if member.name in (FIRST, LAST):
                    whole = member.name == LAST
                    continue
                if name.is_absolute() or ".." in name.parts or name.parts[:1] != ("content",) or not (member.isfile() or member.isdir()):
                    raise Error(f"{path}: '{member.name}' is not a file of a checkpoint's folder")
                target = part.joinpath(*name.parts[1:])
                if member.isdir():
                    target.mkdir(parents=True, exist_ok=True)
                    continue
                target.parent.mkdir(parents=True, exist_ok=True)
                with open(target, "wb") as file:
                    shutil.copyfileobj(archive.extractfile(member), file, PIECE)
            if not whole:
                raise Error(f"{path}: not a whole checkpoint: its end is missing")
    except (tarfile.TarError, EOFError) as error:
        shutil.rmtree(part, ignore_errors=True)
        raise Error(f"{path}: not a whole checkpoint: {error}") from error
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(part, folder)
    return folder


def write_json(path, document):
    """Whole or not at all. Returns: the path."""
    part = path.with_name(path.name + PART)
    try:
        part.write_text(json.dumps(document, allow_nan=False), encoding="utf-8")
        settle(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return path


def copy(path, target):
    """Whole or not at all, as a file of its own. Throws: OSError, Error where it is being written."""
    part = target.with_name(target.name + PART)
    try:
        with unchanged(path):
            shutil.copyfile(path, part)
        settle(part, target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
