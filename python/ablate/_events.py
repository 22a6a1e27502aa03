# SPDX-License-Identifier: Apache-2.0
"""How a trial speaks to its worker: one JSON object a line on standard output (docs/trainer-protocol.md)."""
import json
import os
import select
import sys
import threading

from ._errors import Error

LONGEST_LINE = 200 << 10  # bytes; the worker takes 256 KiB


def line_of(event, **keys):
    return json.dumps({"event": event, **keys}, allow_nan=False)


class Events:
    """Lines for the worker, each written whole and at once, on what was standard output when this was made: a script may put
    `sys.stdout` elsewhere. Thread: any."""

    def __init__(self, file=1):
        self._file = os.dup(file)
        self._lock = threading.Lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)

    def _after_fork(self):
        self._lock = threading.Lock()  # who held it is not in this process

    def say(self, event, **keys):
        # What the script printed before stands before it. A line that it has begun ends there: the worker finds an event behind a
        # carriage return, as behind a progress bar.
        line = "\r" + line_of(event, **keys) + "\n"
        with self._lock:
            try:
                sys.stdout.flush()
            except (AttributeError, ValueError, OSError):
                pass  # closed, or none: then nothing of it is left to write either
            self._write(line.encode())

    def _write(self, data):
        while data:
            try:
                data = data[os.write(self._file, data):]
            except BlockingIOError:  # somebody made the pipe non-blocking; the worker reads on when it can
                select.select([], [self._file], [])
            except OSError as error:
                raise Error(f"the worker does not hear this trial: {error.strerror}") from error
