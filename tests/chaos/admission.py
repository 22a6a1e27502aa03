# SPDX-License-Identifier: Apache-2.0
"""What is done to who may come in: tokens that are revoked in flight, certificates that are exchanged, workers and people who have no
business here. Each is a story of several commands that takes its time beside everything else; whoever is refused hears why, in one
line, or else that the scheduler does not answer just now."""
import contextlib
import functools
import re
import shutil
import signal
import ssl
import subprocess
import tempfile
import time

from fleet import BIN
from secured import id_of

PATIENCE = 90  # seconds for what is done at once where nobody is disturbed


class Done:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err
        self.lines = [line for line in err.splitlines() if line.strip()]


class Asked:
    """A command under way; what it says goes to files, which never fill up."""

    def __init__(self, argv, environment, given=""):
        self.out, self.err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        stdin = tempfile.TemporaryFile()
        stdin.write(given.encode())
        stdin.seek(0)
        self.popen = subprocess.Popen(list(map(str, argv)), env=environment, stdin=stdin, stdout=self.out, stderr=self.err)
        stdin.close()
        self.deadline = time.monotonic() + 2 * PATIENCE

    def said(self):
        """So far, on stderr."""
        return self.text(self.err)

    @staticmethod
    def text(file):
        file.seek(0)
        return file.read().decode(errors="replace")

    def answer(self):
        if self.popen.poll() is None and time.monotonic() > self.deadline:
            self.popen.kill()
            self.popen.wait()
        if self.popen.poll() is None:
            return None
        done = Done(self.popen.returncode, self.text(self.out), self.text(self.err))
        self.out.close()
        self.err.close()
        return done


class Until:
    """Yielded by a story: goes on when `condition` holds (what it gives), or after so many seconds (None)."""

    def __init__(self, condition, seconds=PATIENCE):
        self.condition, self.deadline = condition, time.monotonic() + seconds

    def look(self):
        found = self.condition()
        if found:
            return True, found
        return time.monotonic() > self.deadline, None


class Story:
    def __init__(self, kind, steps):
        self.kind, self.steps = kind, steps
        self.waits_for = None
        self.go_on(None)

    def go_on(self, value):
        try:
            self.waits_for = self.steps.send(value)
            if isinstance(self.waits_for, (int, float)):
                self.waits_for = Until(lambda: False, self.waits_for)
        except StopIteration:
            self.waits_for = None

    def work(self):
        """Returns: whether it goes on."""
        if isinstance(self.waits_for, Asked):
            if done := self.waits_for.answer():
                self.go_on(done)
        elif self.waits_for:
            over, value = self.waits_for.look()
            if over:
                self.go_on(value)
        return self.waits_for is not None


TROUBLE = (  # what a person hears where the scheduler, its disk or the way to it is not well
    "no scheduler answers at", "stopped before it had answered", "gave no answer within", "the disk is full", "No space left", "database is locked",
    "fail point", "disk I/O error", "closes connections before TLS has begun", "closes connections without an answer",
    "does not finish the TLS handshake", "lets one connect and says nothing for")


ANOTHER = "another good one"
REVOKED = "token revoked: of a worker"
PEOPLE = {"ada": "a submitter", "vic": "a viewer", "root": "an admin", "gone": "who was revoked", "late": "whose token expires", "nobody": "nobody"}


class Admission:
    def __init__(self, world, faults, chance):
        self.world, self.faults, self.chance = world, faults, chance
        self.stories = []
        self.tasks = 0
        self.left = []  # to be done once, in this order
        self.heard = {}  # how often each answer was given
        faults.add_kinds([(4, self.revoke_worker), (3, self.exchange_certificate), (5, self.uninvited_worker), (14, self.caller), (2, self.revoke_watcher)])

    # --- stories ---

    def tell(self, kind, steps):
        self.world.counts[kind] += 1
        story = Story(kind, steps)
        if story.waits_for:
            self.stories.append(story)
        return True

    def work(self):
        self.stories = [story for story in self.stories if story.work()]
        if self.left and len(self.stories) < 4:
            next_one = self.left.pop(0)
            if not next_one():
                self.left.append(next_one)

    def plan_all(self):
        """Each thing once, beside what chance has in mind: for a short run."""
        once = functools.partial
        self.left = [self.revoke_worker, *(once(self.exchange_certificate, kind) for kind in (ANOTHER, *self.world.bad)), self.revoke_watcher,
                     *(once(self.uninvited_worker, number) for number in range(7)), *(once(self.caller, number) for number in range(21))]
        self.chance.shuffle(self.left)

    def finish(self, meanwhile):
        """All of them come to their end, with nobody else in their way."""
        deadline = time.monotonic() + 5 * PATIENCE
        while self.stories and time.monotonic() < deadline:
            meanwhile()
            self.work()
            time.sleep(0.02)
        if self.stories:
            self.world.find("admission", f"these did not come to their end: {', '.join(story.kind for story in self.stories)}")

    def owner(self, *argv):
        return Asked([BIN / "ablate", *argv], self.world.owner())

    def insist(self, *argv):
        """A command of the owner, given again until it is heeded. Returns: its answer; None where it is not within the patience."""
        deadline = time.monotonic() + 2 * PATIENCE
        while time.monotonic() < deadline:
            done = yield self.owner(*argv)
            if done.code == 0:
                return done
            if done.code != 3 and not self.is_trouble(done):
                self.world.find("command", f"ablate {' '.join(map(str, argv))}: exit code {done.code}: {done.err[-400:]}")
            yield 0.3
        self.world.find("command", f"ablate {' '.join(map(str, argv))} was not heeded within {2 * PATIENCE} s")
        return None

    def new_token(self, role, name, expires="30d"):
        """One that was acknowledged: of an attempt that was not, there is no file."""
        self.tasks += 1
        file = self.world.tokens / f"{name}-{self.tasks}.{role}"
        for _ in range(100):
            done = yield self.owner("token", "create", "--role", role, "--name", name, "--expires", expires, "--out", file)
            if done.code == 0:
                self.world.made[id_of(file)] = file
                return file
            if not self.is_trouble(done):
                self.world.find("command", f"ablate token create: exit code {done.code}: {done.err[-400:]}")
            if file.exists():
                self.world.find("token", f"ablate token create was not heeded ({done.err.strip()[-200:]}) and left {file.name}")
                file.unlink()
            yield 0.3
        return None

    # --- what is heard ---

    @staticmethod
    def is_trouble(done):
        told = [line for line in done.lines if not line.startswith("the scheduler can store nothing")]
        return done.code in (1, 3) and len(told) == 1 and any(words in told[0] for words in TROUBLE)

    def note(self, who, line):
        line = re.sub(r"127\.0\.1\.\d+:\d+|[0-9a-f]{12}|\bs\d{4}\b|/\S+|\bw\d+\b|uninvited-\d+|\d{4}-\d\d-\d\d at \d\d:\d\d", "…", line)
        self.heard[who, line] = self.heard.get((who, line), 0) + 1

    def judge(self, who, done, expected):
        """`expected`: (exit code, words) of which one must be the answer; or one line of trouble."""
        told = [line for line in done.lines if not line.startswith("the scheduler can store nothing")]
        for code, words in expected:
            if done.code == code == 0:
                return self.note(who, "is answered")
            if done.code == code and len(told) == 1 and words in told[0]:
                return self.note(who, told[0])
        if self.is_trouble(done):
            return self.note(who, told[0])
        self.world.find("refusal", f"{who}: exit code {done.code}, {done.err.strip()[-500:]!r}; expected {expected}")
        return None

    # --- people ---

    def caller(self, number=None):
        """Somebody asks for something, with a role that may do it or may not."""
        requests = self.requests()
        if not requests:
            return False
        who, argv, expected = self.chance.choice(requests) if number is None else requests[number]
        return self.tell(f"a request of {PEOPLE[who]}", self.call(who, argv, expected))

    def call(self, who, argv, expected):
        person = self.world.people[who]
        done = yield Asked([BIN / "ablate", *argv], person.environment())
        self.judge(f"{who}: {' '.join(argv[:2])}" if argv[0] == "token" else f"{who}: {argv[0]}", done, expected)

    def requests(self):
        sweeps = sorted((self.world.home / "sweeps").glob("s*.yaml"))
        if not sweeps:
            return []
        file = str(self.chance.choice(sweeps))
        name = file.rsplit("/", 1)[1].removesuffix(".yaml")
        forbidden = self.world.home / "forbidden.yaml"
        if not forbidden.exists():
            forbidden.write_text(sweeps[0].read_text().replace(sweeps[0].stem, "forbidden"))
        there = [(0, ""), (2, "unknown sweep")]  # it may not have been submitted yet
        late = [(0, ""), (2, "this token expired on")]
        return [
            ("vic", ["ls"], [(0, "")]), ("vic", ["show", name], there), ("vic", ["table", name], there), ("vic", ["workers"], [(0, "")]),
            ("vic", ["submit", str(forbidden)], [(2, "role viewer may not do this")]), ("vic", ["cancel", name], [(2, "role viewer may not do this")]),
            ("vic", ["pause", name], [(2, "role viewer may not do this")]), ("vic", ["retry", name], [(2, "role viewer may not do this")]),
            ("vic", ["token", "ls"], [(2, "needs role admin")]), ("vic", ["audit"], [(2, "needs role admin")]),
            ("ada", ["ls"], [(0, "")]), ("ada", ["validate", file], [(0, "")]), ("ada", ["rm", name, "--yes"], [(2, "needs role admin"), (2, "unknown sweep")]),
            ("ada", ["token", "create", "--role", "admin", "--name", "eve"], [(2, "needs role admin")]),
            ("root", ["token", "ls"], [(0, "")]), ("root", ["audit"], [(0, "")]),
            ("gone", ["ls"], [(2, "this token is revoked")]), ("gone", ["submit", str(forbidden)], [(2, "this token is revoked")]),
            ("late", ["ls"], late), ("nobody", ["ls"], [(2, "run 'ablate login")]),
            ("nobody", ["submit", str(forbidden)], [(2, "run 'ablate login")]),
        ]

    def revoke_watcher(self):
        """A viewer's token is revoked while he watches a sweep: his watch ends at once, and says why."""
        reader = self.world.reader()
        if not reader:
            return False
        try:
            found = reader.execute("SELECT name FROM sweep WHERE state = 'active' ORDER BY id DESC LIMIT 1").fetchone()
        except Exception:
            return False
        finally:
            reader.close()
        if not found or "watcher" in self.world.busy:
            return False
        self.world.busy["watcher"] = found[0]
        return self.tell("token revoked: of who watches", self.watch(found[0]))

    def watch(self, sweep):
        person = self.world.people["nobody"]
        environment = dict(person.environment(), XDG_CONFIG_HOME=str(person.home / f"watcher-{self.tasks}"))
        file = yield from self.new_token("viewer", "watcher")
        for _ in range(100):
            done = yield Asked([BIN / "ablate", "login", person.proxy.address, "--ca", self.world.authority], environment, file.read_text())
            if done.code == 0:
                break
            self.judge("watcher: login", done, [(0, "")])
            yield 0.3
        watching = Asked([BIN / "ablate", "watch", sweep], environment)
        yield self.chance.uniform(0.1, 1)
        if (yield from self.insist("token", "revoke", id_of(file))):
            self.world.revoked.add(id_of(file))
            done = yield watching
            # what is over is told to its end; a watch whose connection is lost asks again
            told = done.lines[-1] if done.lines else done.out.strip().splitlines()[-1] if done.out.strip() else ""
            if done.code == 2 and "this token is revoked" in told:
                self.note("watcher: watch", told)
            elif done.code not in (0, 1, 3):
                self.world.find("refusal", f"who watched {sweep} when the token was revoked: exit code {done.code}: {told[-400:]!r}")
        del self.world.busy["watcher"]

    # --- workers ---

    def revoke_worker(self):
        """A worker's token is revoked while it works: it is out at once and gets nothing more; with a new token it comes back."""
        well = [name for name in self.world.workers() if self.faults.well(name) and ("network", name) not in self.world.busy
                and (self.world.worker_disk / name / "token").exists()]
        if not well:
            return False
        worker = self.world.processes[self.chance.choice(well)]
        self.world.busy[worker.name] = self.world.busy["network", worker.name] = "token revoked"
        return self.tell(REVOKED, self.let_go_and_back(worker))

    def let_go_and_back(self, worker):
        world, kept = self.world, self.world.worker_disk / worker.name / "token"
        token, from_here = id_of(kept), worker.log.stat().st_size
        if not (yield from self.insist("token", "revoke", token)):
            return
        world.revoked.add(token)
        yield 1.0  # what was being assigned then
        newest = self.runs_since(0, worker.name)
        if not (yield Until(lambda: "this token is revoked" in said_from(worker.log, from_here))):
            world.find("admission", f"{worker.name}: its token was revoked and acknowledged, and {PATIENCE} s later it has not said so: "
                                    f"{said_from(worker.log, from_here)[-600:]}")
        yield self.chance.uniform(0.1, 2)
        if late := [run for run in self.runs_since(max(newest, default=0), worker.name)]:
            world.find("admission", f"{worker.name}: its token was revoked, and it was given runs {late}")
        file = yield from self.new_token("join", worker.name)
        worker.held = True
        while worker.popen:
            if worker.alive() and worker.expected is None:
                worker.popen.send_signal(signal.SIGCONT)
                worker.stopped_until = None
                if self.chance.random() < 0.5:
                    world.kill(worker)
                else:
                    worker.expected = "term"
                    worker.popen.terminate()
            yield 0.05
        kept.unlink()
        worker.argv[worker.argv.index("--join-token-file") + 1] = str(file)
        worker.held = False
        if not (yield Until(kept.exists, 2 * PATIENCE)):
            world.find("admission", f"{worker.name} did not come back with a new token: {said_from(worker.log, from_here)[-600:]}")
        del world.busy[worker.name], world.busy["network", worker.name]
        world.note(REVOKED, worker.name, 0)

    def runs_since(self, run, worker):
        reader = self.world.reader()
        try:
            return [row[0] for row in reader.execute("SELECT id FROM run WHERE id > ? AND worker = ?", (run, worker))] if reader else []
        except Exception:  # locked, or being made
            return []
        finally:
            if reader:
                reader.close()

    def uninvited_worker(self, number=None):
        if not self.world.first_has_joined():
            return False
        kinds = self.uninvited()
        what, make, code, words = self.chance.choice(kinds) if number is None else kinds[number]
        return self.tell(f"a worker with {what}", self.come_uninvited(what, make, code, words))

    def uninvited(self):
        world = self.world
        ca = ("--ca", world.authority)

        def with_token(file, authority=world.authority):
            return lambda home: ("--ca", authority, "--join-token-file", file)

        def with_copied_token(home):
            copied = self.chance.choice(list(world.worker_disk.glob("*/token")))
            home.mkdir()
            shutil.copy2(copied, home / "token")
            return ca

        kinds = [("no token", lambda home: ca, (2,), "pass --join-token-file"),
                 ("plain text", lambda home: (), None, "it speaks TLS"),
                 ("a used token", with_token(world.fleet / "join.token"), (2,), "used already"),
                 ("a viewer's token", with_token(world.unused["viewer"]), (2,), "not a join token"),
                 ("another fleet's authority", with_token(world.other_token, world.other_authority), (2, 3), "another authority"),
                 ("another fleet's token", with_token(world.other_token), (2,), "not known here"),
                 ("a copied token", with_copied_token, None, "this token ")]  # belongs to another worker, or is revoked
        if time.monotonic() - world.born > 90:
            kinds.append(("an expired token", with_token(world.unused["expired"]), (2,), "this token expired on"))
        return kinds

    def come_uninvited(self, what, make, codes, words):
        """`codes`: with which it ends; None: it goes on asking, and is stopped."""
        self.tasks += 1
        name = f"uninvited-{self.tasks}"
        home = self.world.home / name
        with contextlib.suppress(IndexError, OSError):
            asked = Asked([BIN / "ablate-worker", "--scheduler", self.world.people["nobody"].proxy.address, "--home", home, "--name", name, "--slots", "1",
                           "--trainer", "/bin/false", *make(home)], self.world.owner())
            if codes is None:
                yield Until(lambda: words in asked.said() or asked.popen.poll() is not None)
                if words not in asked.said():
                    self.world.find("refusal", f"a worker with {what} was not told '{words}': {asked.said()[-500:]}")
                else:
                    self.note(f"worker with {what}", next(line for line in asked.said().splitlines() if words in line).split("scheduler at ")[-1])
                asked.popen.terminate()
                done = yield asked
                if done.code != 0:
                    self.world.find("ended", f"a worker with {what} ended with {done.code} when asked to stop: {done.err[-400:]}")
            else:
                done = yield asked
                said = [line for line in done.lines if line.startswith("ablate-worker:")]
                trouble = done.code == 3 and len(said) == 1 and any(text in said[0] for text in (*TROUBLE, "cannot join the fleet at"))
                if not trouble and not (done.code in codes and len(said) == 1 and words in said[0]):
                    self.world.find("refusal", f"a worker with {what}: exit code {done.code}, {done.err[-500:]!r}; expected '{words}'")
                elif said:
                    self.note(f"worker with {what}", said[0])
            if (home / "token").exists() and what != "a copied token":
                self.world.find("admission", f"a worker with {what} has got a token")
        shutil.rmtree(home, ignore_errors=True)

    # --- the certificate ---

    def exchange_certificate(self, kind=None):
        if "certificate" in self.world.busy:
            return False
        kind = kind or (ANOTHER if self.chance.random() < 0.4 else self.chance.choice(list(self.world.bad)))
        good = kind == ANOTHER
        self.world.busy["certificate"] = kind
        return self.tell(f"certificate exchanged for {kind}", self.exchange(kind, good))

    def exchange(self, kind, good):
        world = self.world
        if good:
            world.in_place = 1 - world.in_place
        else:
            from_here = world.scheduler().log.stat().st_size
            world.put_certificate(world.bad[kind])
            refused = ("the one before stays", "ablate-scheduler: --tls-")  # while it runs; where it starts just then
            if not (yield Until(lambda: any(words in said_from(world.scheduler().log, from_here) for words in refused))):
                world.find("certificate", f"{kind} was put in the place of the certificate, and the scheduler has said nothing of it in {PATIENCE} s")
            yield self.chance.uniform(0, 1)
        expected = ssl.PEM_cert_to_DER_cert(world.good[world.in_place][0].decode())
        if not good and (yield from self.shown()) not in (expected, None):
            world.find("certificate", f"{kind} was put in the place of the certificate, and what is shown now is not the one before")
        world.put_certificate(world.good[world.in_place])
        deadline, shown = time.monotonic() + 2 * PATIENCE, None
        while shown != expected and time.monotonic() < deadline:
            shown = yield from self.shown()
            yield 0.2
        if shown != expected:
            world.find("certificate", f"the good certificate that was put there is not shown {2 * PATIENCE} s later, but {'another' if shown else 'none'}")
        del world.busy["certificate"]

    def shown(self):
        """The certificate that the port shows; None where it shows none."""
        future = self.world.shown()
        yield Until(future.done, 10)
        with contextlib.suppress(Exception):
            return future.result(0)
        return None


def said_from(log, offset):
    with open(log, "rb") as file:
        file.seek(offset)
        return file.read().decode(errors="replace")
