# SPDX-License-Identifier: Apache-2.0
"""A scheduler with TLS and tokens in a folder of its own, and workers that join it through 127.0.0.1, as an administrator sets them up."""
import pathlib
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "orchestration"))

from home import Home, program  # noqa: E402


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class SecuredHome(Home):
    def start_scheduler(self, *options):
        self.socket.parent.mkdir(mode=0o700, exist_ok=True)
        self.tcp = f"127.0.0.1:{free_port()}"
        self.ablate("init-fleet", "--name", "localhost", "--store", self.store, "--home", self.folder)
        self.fleet = self.folder / "fleet"
        serving = self.start("scheduler", [program("ablate-scheduler"), "--store", self.store, "--listen", self.address, "--listen", self.tcp,
                                           "--http-port", 0, "--tls-certificate", self.fleet / "server.crt", "--tls-key", self.fleet / "server.key",
                                           *options])
        log = self.folder / "scheduler.log"
        self.until(lambda: b"is ready" in log.read_bytes(), "the scheduler is ready")
        return serving

    def start_worker(self, name, *options):
        token = self.folder / f"{name}.join"
        self.ablate("token", "create", "--role", "join", "--name", name, "--out", token, "--scheduler", self.address)
        return self.start(name, [program("ablate-worker"), "--scheduler", self.tcp, "--ca", self.fleet / "ca.crt", "--join-token-file", token,
                                 "--home", self.folder / name, "--name", name, *options])
