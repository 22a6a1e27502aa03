# SPDX-License-Identifier: Apache-2.0
"""SIGTERM as a flag: the script ends where it wants to, with its files whole."""
import os
import signal
import threading

from ._errors import Error


class Stop:
    """Watches for SIGTERM from `watch` on. A handler that was there is called as well."""

    def __init__(self):
        self.asked = False
        self._watches = False
        self._process = 0
        self._kept = threading.local()
        self._before = signal.SIG_DFL

    def watch(self):
        if self._watches:
            return
        if threading.current_thread() is not threading.main_thread():
            raise Error("should_stop() was first called in a thread; call it once in the main thread before (Python handles signals there)")
        self._process = os.getpid()
        self._before = signal.signal(signal.SIGTERM, self._handle)
        self._watches = True
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=self._before_fork, after_in_parent=self._unblock, after_in_child=self._after_fork)

    def watch_alone(self):
        """From here on no handler but this one is called."""
        self.watch()
        self._before = signal.SIG_DFL
        signal.signal(signal.SIGTERM, self._handle)

    def _handle(self, number, frame):
        if os.getpid() != self._process:  # before `_after_fork`, or called by another's handler
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        self.asked = True
        if callable(self._before):
            self._before(number, frame)

    # A process of a data loader or pool ends by SIGTERM, as those who made it expect. One that comes while it begins waits until it has
    # begun: Python forgets those that come to a handler in between.
    def _before_fork(self):
        self._kept.mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})

    def _unblock(self):
        signal.pthread_sigmask(signal.SIG_SETMASK, self._kept.mask)

    def _after_fork(self):
        if signal.getsignal(signal.SIGTERM) == self._handle:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._unblock()
