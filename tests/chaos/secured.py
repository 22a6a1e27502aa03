# SPDX-License-Identifier: Apache-2.0
"""The world of chaos with TLS and tokens: every worker has a token and an address of its own, and reaches the scheduler through a proxy;
people with roles ask from theirs. What is known of who may do what is kept here, and held against the results file at the end."""
import asyncio
import os
import pathlib
import random
import shutil
import socket
import sqlite3
import ssl
import subprocess
import time

from fleet import BIN
from world import World

LIFETIME = "30d"  # longer than the clock is set ahead
EXPIRED, BROKEN, CUT_OFF, MISMATCHED = "an expired one", "a broken one", "half of one", "one without its key"


def host_of(number):
    return f"127.0.1.{number + 1}"


def free_port():
    """None that the kernel gives to callers: it is the same after every restart."""
    for port in random.sample(range(20000, 30000), 200):
        with socket.socket() as taken:
            try:
                taken.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise RuntimeError("no port is free")


class Person:
    """Somebody who asks from an address of their own, and has logins of their own."""

    def __init__(self, world, name, number):
        self.world, self.name = world, name
        self.home = world.home / "people" / name
        self.home.mkdir(parents=True)
        self.proxy = world.network.proxy(("127.0.0.1", world.port), host_of(number), tls=True)

    def environment(self):
        return dict(os.environ, ABLATE_HOME=str(self.home), XDG_CONFIG_HOME=str(self.home / "config"), ABLATE_SCHEDULER=self.proxy.address,
                    NO_COLOR="1")


class SecuredWorld(World):
    def set_up(self, workers):
        self.port = free_port()
        self.fleet = self.home / "fleet"
        self.tokens = self.home / "tokens"
        self.tokens.mkdir(mode=0o700)
        self.made, self.revoked = {}, set()  # id -> file of what was acknowledged; ids that were revoked, acknowledged too
        names = [host_of(number) for number in range(len(workers) + len(ROLES) + 5)]
        self.ablate_or_fail("init-fleet", "--name", ",".join(names), "--store", self.store)
        self.authority = self.fleet / "ca.crt"
        self.certificate, self.key = self.fleet / "server.crt", self.fleet / "server.key"
        certificate, key = self.make_certificate("other", names)
        self.good = [(self.certificate.read_bytes(), self.key.read_bytes()), (certificate, key)]
        self.bad = {EXPIRED: self.make_certificate("expired", names, days=-1), BROKEN: (b"broken", key), CUT_OFF: (certificate[:len(certificate) // 2], key),
                    MISMATCHED: (certificate, self.make_certificate("mismatched", names)[1])}
        self.in_place = 0  # of the good ones
        self.add_scheduler("--listen", f"127.0.0.1:{self.port}", "--tls-certificate", self.certificate, "--tls-key", self.key)

        self.calm = True  # until everybody is in
        scheduler = self.scheduler()
        self.start(scheduler)
        self.until(lambda: self.answers() and self.ablate("ls").returncode == 0, "the scheduler answers")
        self.born = time.monotonic()
        for number, name in enumerate(workers):
            self.proxies[name] = self.network.proxy(("127.0.0.1", self.port), host_of(number), tls=True)
            self.add_worker(name, "--ca", self.authority, "--join-token-file", self.new_token("join", name) if number else self.fleet / "join.token")
        self.first = workers[0]
        self.people = {}
        for number, (name, role, expires) in enumerate(ROLES):
            person = self.people[name] = Person(self, name, len(workers) + number)
            self.proxies[name] = person.proxy
            if role:
                person.token = self.new_token(role, name, expires)
                self.log_in(person)
        self.unused = {"expired": self.new_token("join", "expired", "1m"), "viewer": self.people["vic"].token}
        self.revoke(self.people["gone"].token)
        self.other_authority, self.other_token = self.make_other_fleet()
        self.calm = False

    # --- how it begins ---

    def until(self, condition, what, seconds=120):
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline or not self.scheduler().alive():
                raise RuntimeError(f"waited in vain until {what}: {self.said_since_start(self.scheduler())[-800:]}")
            time.sleep(0.05)

    def ablate_or_fail(self, *argv, given=None, environment=None):
        done = subprocess.run([str(BIN / "ablate"), *map(str, argv)], env=environment or self.owner(), text=True, capture_output=True, timeout=120,
                              input=given or "")
        if done.returncode != 0:
            raise RuntimeError(f"ablate {' '.join(map(str, argv))}: exit code {done.returncode}: {done.stderr}")
        return done.stdout

    def new_token(self, role, name, expires=LIFETIME):
        file = self.tokens / f"{name}-{len(self.made)}.{role}"
        self.ablate_or_fail("token", "create", "--role", role, "--name", name, "--expires", expires, "--out", file)
        self.made[id_of(file)] = file
        return file

    def revoke(self, file):
        self.ablate_or_fail("token", "revoke", id_of(file))
        self.revoked.add(id_of(file))

    def log_in(self, person):
        self.ablate_or_fail("login", person.proxy.address, "--ca", self.authority, given=person.token.read_text(), environment=person.environment())

    def make_certificate(self, name, names, days=60):
        """Signed by the fleet's own authority. Returns: certificate and key."""
        folder = self.home / "certificates" / name
        folder.mkdir(parents=True)
        (folder / "names").write_text("subjectAltName=" + ",".join([f"IP:{name}" for name in names] + ["IP:127.0.0.1", "DNS:localhost"]))
        for argv in (["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=scheduler", "-keyout", folder / "key",
                      "-out", folder / "request"],
                     ["x509", "-req", "-in", folder / "request", "-CA", self.fleet / "ca.crt", "-CAkey", self.fleet / "ca.key", "-CAcreateserial",
                      "-days", days, "-extfile", folder / "names", "-out", folder / "crt"]):
            subprocess.run(["openssl", *map(str, argv)], check=True, capture_output=True)
        return (folder / "crt").read_bytes(), (folder / "key").read_bytes()

    def make_other_fleet(self):
        home = self.home / "other"
        self.ablate_or_fail("init-fleet", "--name", "elsewhere", "--store", home / "results.db", environment=dict(self.owner(), ABLATE_HOME=str(home)))
        return home / "fleet" / "ca.crt", home / "fleet" / "admin.token"

    # --- what is asked of it while it runs ---

    def first_has_joined(self):
        return (self.worker_disk / self.first / "token").exists()

    def submitter(self):
        """Half of what is submitted comes over the network."""
        return self.people["ada"].environment() if self.chance.random() < 0.5 else self.owner()

    def put_certificate(self, pair):
        """The key first; until its certificate follows the two do not belong together."""
        for file, content in zip((self.key, self.certificate), reversed(pair)):
            part = file.with_suffix(".part")
            part.touch(mode=0o600)
            part.write_bytes(content)
            part.rename(file)

    def shown(self):
        """A future of the certificate (DER) that the port shows just now."""
        async def ask():
            any_will_do = ssl.create_default_context()
            any_will_do.check_hostname, any_will_do.verify_mode = False, ssl.CERT_NONE
            any_will_do.set_alpn_protocols(["h2"])
            _, writer = await asyncio.wait_for(asyncio.open_connection("127.0.0.1", self.port, ssl=any_will_do), 5)
            seen = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
            writer.transport.abort()
            return seen
        return self.network.begin(ask())

    def may_not_start(self, process, code, lines):
        last = lines[-1] if lines else ""
        if process.name == "scheduler" and code == 2 and self.busy.get("certificate"):  # a bad one lies there
            return any(words in last for words in ("--tls-certificate", "--tls-key"))
        joins = process.name != "scheduler" and not (self.worker_disk / process.name / "token").exists()
        if joins and code == 3:
            return any(words in last for words in ("cannot join: ", "cannot join the fleet at", "No space left", "in use by"))
        return super().may_not_start(process, code, lines)

    # --- how it ends ---

    def check_tokens(self):
        """What was acknowledged of tokens is stored, and no secret is where others read it."""
        stored = {row[0]: row[1:] for row in sqlite3.connect(f"file:{self.store}?mode=ro", uri=True).execute(
            "SELECT id, role, revoked_ms, used_ms FROM access_token")}
        for token, file in self.made.items():
            if token not in stored:
                self.find("token", f"token {token} ({file.name}) was made, acknowledged, and is not stored")
        for token in self.revoked:
            if token in stored and stored[token][1] is None:
                self.find("token", f"token {token} was revoked, acknowledged, and is stored as good")
        secrets = {file.read_text().strip().encode() for file in [*self.made.values(), *self.worker_disk.glob("*/token"), self.fleet / "admin.token"]}
        for file in [*(self.home / "logs").glob("*.log"), *filter(pathlib.Path.is_file, self.store_disk.glob("results.db*"))]:
            content = file.read_bytes()
            if any(secret in content for secret in secrets):
                self.find("token", f"a token's secret is in {file.name}")

    def leave(self, keep):
        if keep:
            for secret in (self.tokens, self.home / "people", self.fleet):  # of no use to anybody any more
                shutil.rmtree(secret, ignore_errors=True)
        super().leave(keep)


ROLES = (("ada", "submitter", LIFETIME), ("vic", "viewer", LIFETIME), ("root", "admin", LIFETIME), ("gone", "viewer", LIFETIME),
         ("late", "viewer", "1m"), ("nobody", None, None))


def id_of(file):
    """The public part of a token, by which people speak of it."""
    return pathlib.Path(file).read_text().split("_")[1]
