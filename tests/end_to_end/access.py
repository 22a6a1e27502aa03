# SPDX-License-Identifier: Apache-2.0
"""A fleet with TLS and tokens, as an administrator sets one up: made in one command, a worker joins, a sweep is trained. And who does
not get in, each with one clear line."""
import contextlib
import http.client
import json
import os
import re
import socket
import ssl
import stat
import subprocess
import time

from fleet import BIN, Fleet, expect, say

SWEEP = """ablate: 1
name: NAME
command:
  argv: [sh, -c, 'WAIT; echo "{\\"event\\":\\"metric\\",\\"step\\":1,\\"values\\":{\\"acc\\":{seed}}}"']
  folder: "{run_dir}"
  params: {x: 1}
  version: "1"
rows: [{id: a}]
seeds: [0, 1]
table:
  columns: [{name: acc, metric: acc}]
"""


def sweep_file(fleet, name, wait="true"):
    file = fleet.home / f"{name}.yaml"
    file.write_text(SWEEP.replace("NAME", name).replace("WAIT", wait))
    return file


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Person:
    """Somebody at another machine: with a home and logins of their own."""

    def __init__(self, fleet, name):
        self.home = fleet.home / name
        self.home.mkdir()
        self.environment = dict(fleet.environment, ABLATE_HOME=str(self.home / "state"), XDG_CONFIG_HOME=str(self.home / "config"))
        del self.environment["ABLATE_SCHEDULER"]

    def ablate(self, *argv, given=""):
        return subprocess.run([str(BIN / "ablate"), *map(str, argv)], env=self.environment, text=True, input=given, capture_output=True, timeout=120)


def one_line(done, code, words, what):
    said = (done.stderr or done.stdout).strip()
    expect(done.returncode == code and "\n" not in said and words in said, f"{what}: exit code {done.returncode}, {said!r}")


def made_in_one_command(fleet):
    said = fleet.ablate("init-fleet", "--name", "gpu-head,10.0.0.5", "--store", fleet.store).stdout
    folder = fleet.home / "fleet"
    expect("ablate-scheduler" in said and "ablate login" in said and "--join-token-file" in said, "it says what to do next")
    files = {file.name: file for file in folder.iterdir()}
    expect(set(files) == {"ca.crt", "ca.key", "server.crt", "server.key", "admin.token", "join.token"}, f"in {folder}: {sorted(files)}")
    expect(all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in files.values()) and stat.S_IMODE(folder.stat().st_mode) == 0o700,
           "all of it is its owner's alone")
    before = {name: file.read_bytes() for name, file in files.items()}
    expect("nothing was changed" in fleet.ablate("init-fleet", "--name", "other", "--store", fleet.store).stdout, "again, it changes nothing")
    expect(before == {name: file.read_bytes() for name, file in files.items()}, "and so it is")
    one_line(fleet.ablate("init-fleet", "--renew", "--home", fleet.home / "empty", check=False), 2, "'ablate init-fleet --name HOST' makes it",
             "where there is no fleet nothing is renewed")
    return folder


def scheduler_refusals(fleet, folder):
    def refused(words, *options):
        done = subprocess.run([str(BIN / "ablate-scheduler"), "--store", str(fleet.home / "other.db"), *map(str, options)], env=fleet.environment,
                              text=True, capture_output=True, timeout=60)
        one_line(done, 2, words, "the scheduler does not start")

    refused("--insecure", "--listen", "0.0.0.0:0")
    loose = fleet.home / "loose.key"
    loose.write_bytes((folder / "server.key").read_bytes())
    loose.chmod(0o644)
    refused("open to other users", "--listen", "127.0.0.1:0", "--tls-certificate", folder / "server.crt", "--tls-key", loose)
    refused("is not the key of", "--listen", "127.0.0.1:0", "--tls-certificate", folder / "server.crt", "--tls-key", folder / "ca.key")
    refused("no such file", "--listen", "127.0.0.1:0", "--tls-certificate", fleet.home / "absent", "--tls-key", folder / "server.key")
    expect(not (fleet.home / "other.db").exists(), "and leaves nothing")


def a_sweep_over_tls(fleet, folder, port):
    address = f"127.0.0.1:{port}"
    fleet.start("first", "ablate-worker", "--scheduler", address, "--ca", folder / "ca.crt", "--join-token-file", folder / "join.token", "--home",
                fleet.home / "first", "--name", "first", "--slots", 2, "--allow-commands")
    fleet.until(lambda: "trying for a minute" in (fleet.home / "first.log").read_text(), "a worker comes before its scheduler, and waits")
    fleet.start_scheduler("--listen", address, "--tls-certificate", folder / "server.crt", "--tls-key", folder / "server.key")
    ada = Person(fleet, "ada")
    one_line(ada.ablate("ls", "--scheduler", address), 2, "run 'ablate login", "plain text to the TLS port")
    one_line(ada.ablate("login", address, "--ca", folder / "ca.crt", given="abl_nonsense\n"), 2, "this is not a token", "no token")
    done = ada.ablate("login", f"https://{address}", "--ca", folder / "ca.crt", given=(folder / "admin.token").read_text())
    expect(done.returncode == 0 and "as admin (admin)" in done.stdout, f"the admin logs in: {done.stdout}{done.stderr}")
    logins = ada.home / "config" / "ablate" / "logins.json"
    expect(stat.S_IMODE(logins.stat().st_mode) == 0o600, "what is kept is its owner's alone")
    ada.environment["ABLATE_SCHEDULER"] = address

    fleet.until(lambda: any(w["name"] == "first" and w["connected"] for w in fleet.json("workers")["workers"]), "a worker joins")
    expect(stat.S_IMODE((fleet.home / "first" / "token").stat().st_mode) == 0o600, "and keeps a token of its own")
    done = ada.ablate("submit", sweep_file(fleet, "over-tls"))
    expect(done.returncode == 0, f"a sweep is submitted over TLS: {done.stderr}")
    fleet.wait_for("over-tls")
    sweep = fleet.json("show", "over-tls")["summary"]
    expect(sweep["state"] == "SWEEP_STATE_COMPLETED" and sweep["owner"] == "admin", "trained, and its owner is whose token it was")
    return ada, address


def checks(done):
    return {f"{check['area']}/{check['check']}": check for check in json.loads(done.stdout)["checks"]}


def looked_at_by_the_doctor(fleet, folder, ada, address):
    found = checks(ada.ablate("doctor", "--json"))
    expect(found["scheduler/answers"]["message"] == f"it answers at {address}", f"the doctor speaks TLS: {found['scheduler/answers']}")
    expect(found["scheduler/certificates"]["verdict"] == "ok" and "is good until 20" in found["scheduler/certificates"]["message"],
           f"and knows until when: {found['scheduler/certificates']}")
    stranger = Person(fleet, "stranger")
    answers = checks(stranger.ablate("doctor", "--json", "--scheduler", address))["scheduler/answers"]
    expect(answers["verdict"] == "problem" and "speaks TLS and wants a token" in answers["message"], f"of a stranger it says why not: {answers}")
    for where, words in ((f"127.0.0.1:{free_port()}", "connection refused"), ("no-such-host.invalid:7071", "cannot be found"),
                         ("gpu-head", "expected HOST:PORT")):
        done = stranger.ablate("ls", "--scheduler", where)
        said = done.stderr.strip()
        expect(done.returncode in (2, 3) and "\n" not in said and words in said, f"a wrong address {where}: {said}")


def names_shown(address, authority):
    host, port = address.split(":")
    context = ssl.create_default_context(cafile=authority)
    with socket.create_connection((host, int(port)), timeout=60) as plain, context.wrap_socket(plain, server_hostname=host) as stream:
        return {value for _, value in stream.getpeercert()["subjectAltName"]}


def a_new_certificate(fleet, folder, ada, address):
    shown = names_shown(address, folder / "ca.crt")
    expect("gpu-head" in shown and "gpu-02" not in shown, f"the server's names: {shown}")
    said = json.loads(fleet.ablate("init-fleet", "--renew", "--name", "gpu-head,gpu-02", "--json").stdout)
    expect("gpu-02" in said["renewed"]["names"] and said["renewed"]["ends"].startswith("20"), f"renewed for another name: {said}")
    fleet.until(lambda: "gpu-02" in names_shown(address, folder / "ca.crt"), "the running scheduler shows it, by the same authority")
    expect(ada.ablate("ls").returncode == 0, "and who logged in before goes on")
    expect("not used" not in (fleet.home / "scheduler.log").read_text(), "without a word of a broken one in between")
    said = fleet.ablate("init-fleet", "--renew").stdout
    expect("gpu-02" in said and said.count("good until 20") == 2, f"again, for the same names: {said}")
    expect({file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}, "all of it is its owner's alone")


def whoever_revokes_their_own(fleet, folder, ada, address):
    token = fleet.home / "bob.token"
    made = json.loads(ada.ablate("token", "create", "--role", "admin", "--name", "bob", "--out", token, "--json").stdout)
    bob = Person(fleet, "bob")
    expect(bob.ablate("login", address, "--ca", folder / "ca.crt", given=token.read_text()).returncode == 0, "a second admin logs in")
    done = bob.ablate("token", "revoke", made["id"], "--scheduler", address)
    expect(done.returncode == 0 and "is revoked" in done.stdout and "the token that you are logged in with" in done.stderr,
           f"who revokes the own token is told what happened: {done.stdout}{done.stderr}")
    one_line(bob.ablate("ls", "--scheduler", address), 2, "this token is revoked", "from then on")


def crowds_keep_nobody_out(fleet, folder, address):
    host, port = address.split(":")
    context = ssl.create_default_context(cafile=folder / "ca.crt")
    context.set_alpn_protocols(["h2"])
    with contextlib.ExitStack() as open_ones:
        for _ in range(500):
            open_ones.enter_context(socket.create_connection((host, int(port)), timeout=60))
        before = time.monotonic()
        with socket.create_connection((host, int(port)), timeout=60, source_address=("127.0.0.2", 0)) as plain, \
                context.wrap_socket(plain, server_hostname=host) as stream:
            stream.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0")
            expect(len(stream.recv(64)) > 0, f"500 half-open connections of one address: another is served after {time.monotonic() - before:.3f} s")


def mutual_tls():
    with Fleet("mutual") as fleet:
        fleet.ablate("init-fleet", "--name", "gpu-head", "--store", fleet.store)
        folder, clients, address = fleet.home / "fleet", fleet.home / "fleet" / "clients", f"127.0.0.1:{free_port()}"
        said = fleet.ablate("init-fleet", "--client", "gpu-01,ada").stdout
        expect("gpu-01.crt" in said and "ada.crt" in said and stat.S_IMODE((clients / "ada.key").stat().st_mode) == 0o600, "certificates of clients")
        one_line(fleet.ablate("init-fleet", "--client", "../evil", check=False), 2, "expected a name of letters", "a name is no path")
        fleet.start_scheduler("--listen", address, "--tls-certificate", folder / "server.crt", "--tls-key", folder / "server.key",
                              "--client-ca", folder / "ca.crt")
        worker = [str(BIN / "ablate-worker"), "--scheduler", address, "--ca", str(folder / "ca.crt"), "--join-token-file", str(folder / "join.token"),
                  "--home", str(fleet.home / "gpu-01"), "--name", "gpu-01", "--slots", "1"]
        done = subprocess.run(worker, env=fleet.environment, text=True, capture_output=True, timeout=120)
        lines = [line for line in done.stderr.splitlines() if line.startswith("ablate-worker:")]
        expect(done.returncode in (2, 3) and len(lines) == 1 and "wants a certificate of its clients: pass --certificate and --key" in lines[0],
               f"a worker without one: {lines}")
        fleet.start("gpu-01", "ablate-worker", *worker[1:], "--certificate", clients / "gpu-01.crt", "--key", clients / "gpu-01.key")
        fleet.until(lambda: any(w["connected"] for w in fleet.json("workers")["workers"]), "with one it joins")
        ada = Person(fleet, "ada")
        secret = (folder / "admin.token").read_text()
        one_line(ada.ablate("login", address, "--ca", folder / "ca.crt", given=secret), 2, "wants a certificate of its clients", "a person without one")
        own = ("--certificate", clients / "ada.crt", "--key", clients / "ada.key")
        done = ada.ablate("login", address, "--ca", folder / "ca.crt", *own, given=secret)
        expect(done.returncode == 0, f"with one: {done.stderr}")
        expect(ada.ablate("ls", "--scheduler", address).returncode == 0, "which every command shows from then on")
        expect(checks(ada.ablate("doctor", "--json", "--scheduler", address))["scheduler/answers"]["verdict"] == "ok", "the doctor too")
        (clients / "ada.key").rename(clients / "lost.key")
        one_line(ada.ablate("ls", "--scheduler", address), 2, "ada.key: no such file", "one whose key is gone")


def the_dashboard(fleet, folder, ada, address):
    said = json.loads(ada.ablate("login", address, "--ca", folder / "ca.crt", "--json", given=(folder / "admin.token").read_text()).stdout)
    expect(said["dashboard"].startswith("https://127.0.0.1:"), f"who logs in hears where it is: {said}")
    port = int(said["dashboard"].rsplit(":", 1)[1].strip("/"))
    trusted = ssl.create_default_context(cafile=folder / "ca.crt")

    def ask(method, path, body=None, **fields):
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=trusted, timeout=60)
        connection.request(method, path, body=body, headers={name.replace("_", "-"): value for name, value in fields.items()})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()

    status, _, text = ask("GET", "/api/v1/sweeps")
    expect(status == 401 and "Authorization: Bearer" in json.loads(text)["message"], f"the API wants a token: {status} {text}")
    status, head, _ = ask("GET", "/sweeps/over-tls")
    expect(status == 303 and head["Location"] == "/sign-in?to=/sweeps/over-tls", f"a page leads to the sign-in: {status} {head}")

    token = fleet.home / "dora.token"
    made = json.loads(ada.ablate("token", "create", "--role", "viewer", "--name", "dora", "--out", token, "--json").stdout)
    secret = token.read_text().strip()
    expect(ask("GET", "/api/v1/sweeps", Authorization=f"Bearer {secret}")[0] == 200, "a script shows a token")
    form = {"Content_Type": "application/x-www-form-urlencoded", "Origin": f"https://127.0.0.1:{port}", "Sec_Fetch_Site": "same-origin"}
    status, head, _ = ask("POST", "/sign-in", f"token={secret}&to=%2Fsweeps%2Fover-tls", **form)
    expect(status == 303 and head["Location"] == "/sweeps/over-tls", f"a viewer signs in: {status} {head}")
    cookie = head["Set-Cookie"].split(";")[0]
    expect(all(word in head["Set-Cookie"] for word in ("__Host-", "HttpOnly", "Secure", "SameSite=Strict")), head["Set-Cookie"])
    status, _, text = ask("GET", "/api/v1/sweeps", Cookie=cookie)
    expect(status == 200 and any(sweep["name"] == "over-tls" for sweep in json.loads(text)["sweeps"]), f"and reads: {status}")
    status, _, text = ask("POST", "/sign-in", "token=abl_nonsense", **form)
    expect(status == 401 and "this is not a token" in text and "nonsense" not in text, f"no token: {status}")
    worker = (fleet.home / "first" / "token").read_text().strip()
    expect(ask("GET", "/api/v1/sweeps", Authorization=f"Bearer {worker}")[0] == 403, "a worker's token is for its worker alone")
    status, _, _ = ask("POST", "/sign-in", f"token={secret}", **dict(form, Origin="https://evil.example"))
    expect(status == 403, "another site's form is refused")

    with socket.create_connection(("127.0.0.1", port), timeout=60) as plain, trusted.wrap_socket(plain, server_hostname="127.0.0.1") as stream:
        stream.sendall(f"GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {cookie}\r\n\r\n".encode())
        heard = b""
        while b"event: heartbeat" not in heard:
            heard += stream.recv(4096)
        ada.ablate("token", "revoke", made["id"])
        while b"event: signed-out" not in heard:
            more = stream.recv(4096)
            expect(more, f"the stream says why it ends: {heard}")
            heard += more
    expect(b"this token is revoked" in heard, "a revoked token ends the session's stream")
    expect(ask("GET", "/api/v1/sweeps", Cookie=cookie)[0] == 401, "and its session")
    fleet.until(lambda: sum(line["what"] == "SignIn" for line in fleet.json("audit")["lines"]) >= 2, "sign-ins are in the audit")
    lines = [line for line in fleet.json("audit")["lines"] if line["what"] == "SignIn"]
    expect({line["who"] for line in lines} == {"dora", "unknown"} and all(line["target"] == "127.0.0.1" for line in lines), f"{lines}")

    made = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1", "-subj", "/CN=x",
                           "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(fleet.home / "new.key"), "-out", str(fleet.home / "new.crt")],
                          capture_output=True, text=True)
    expect(made.returncode == 0, f"openssl makes a certificate: {made.returncode}")
    before = {name: (folder / name).read_bytes() for name in ("server.crt", "server.key")}
    (folder / "server.crt").write_text("broken")
    fleet.until(lambda: "the one before stays" in (fleet.home / "scheduler.log").read_text(), "a broken certificate is refused with a line in the log")
    expect(ask("GET", "/healthz")[0] == 200 and ada.ablate("ls").returncode == 0, "and the one before stays")
    (folder / "server.key").write_bytes((fleet.home / "new.key").read_bytes())
    (folder / "server.crt").write_bytes((fleet.home / "new.crt").read_bytes())
    other = ssl.create_default_context(cafile=fleet.home / "new.crt")

    def shows_the_new_one():
        with contextlib.suppress(ssl.SSLError), socket.create_connection(("127.0.0.1", port), timeout=60) as plain:
            other.wrap_socket(plain, server_hostname="127.0.0.1").close()
            return True
        return False
    fleet.until(shows_the_new_one, "a new certificate is shown without a restart")
    for name, content in before.items():
        (folder / name).write_bytes(content)
    # in this order: gRPC reads what the dashboard shows up to a second later, and not the new one any more once that shows the first
    fleet.until(lambda: not shows_the_new_one() and ada.ablate("ls").returncode == 0, "and the first one again")

    for_now = fleet.home / "cleo.token"
    ada.ablate("token", "create", "--role", "viewer", "--name", "cleo", "--out", for_now)
    cleo = Person(fleet, "cleo")
    expect(cleo.ablate("login", address, "--ca", folder / "ca.crt", given=for_now.read_text()).returncode == 0, "somebody logs in")
    done = cleo.ablate("logout", f"https://{address}/")
    expect(done.returncode == 0 and "ablate token revoke" in done.stdout, f"and out: {done.stdout}{done.stderr}")
    expect(secret not in (cleo.home / "config" / "ablate" / "logins.json").read_text(), "and nothing of it is kept")
    one_line(cleo.ablate("logout", address), 2, "no login at", "once")
    one_line(cleo.ablate("ls", "--scheduler", address), 2, "run 'ablate login", "from then on she is nobody")


def who_does_not_get_in(fleet, folder, ada, address):
    def worker(words, name, *options):
        done = subprocess.run([str(BIN / "ablate-worker"), "--scheduler", address, "--home", str(fleet.home / name), "--name", name, "--slots", "1",
                               *map(str, options)], env=fleet.environment, text=True, capture_output=True, timeout=60)
        lines = [line for line in done.stderr.splitlines() if line.startswith("ablate-worker:")]
        expect(done.returncode in (2, 3) and len(lines) == 1 and words in lines[0], f"{lines}")

    worker("pass --join-token-file", "second", "--ca", folder / "ca.crt")
    worker("used already", "second", "--ca", folder / "ca.crt", "--join-token-file", folder / "join.token")
    elsewhere = Fleet("elsewhere")
    with elsewhere:
        elsewhere.ablate("init-fleet", "--name", "x", "--store", elsewhere.store)
        other = elsewhere.home / "fleet"
        worker("another authority", "third", "--ca", other / "ca.crt", "--join-token-file", other / "join.token")
        one_line(Person(fleet, "eve").ablate("login", address, "--ca", other / "ca.crt", given=(other / "admin.token").read_text()), 3,
                 "another authority", "a wrong authority")
        one_line(Person(fleet, "mallory").ablate("login", address, "--ca", folder / "ca.crt", given=(other / "admin.token").read_text()), 2,
                 "not known here", "a token of another fleet")

    vic = Person(fleet, "vic")
    token = fleet.home / "vic.token"
    made = json.loads(ada.ablate("token", "create", "--role", "viewer", "--name", "vic", "--out", token, "--json").stdout)
    expect(vic.ablate("login", address, "--ca", folder / "ca.crt", given=token.read_text()).returncode == 0, "a viewer logs in")
    vic.environment["ABLATE_SCHEDULER"] = address
    expect(vic.ablate("ls").returncode == 0, "and reads")
    one_line(vic.ablate("submit", sweep_file(fleet, "not-mine")), 2, "role viewer may not do this", "and submits nothing")
    one_line(vic.ablate("token", "ls"), 2, "needs role admin", "nor sees tokens")

    go = fleet.home / "GO"
    fleet.ablate("submit", sweep_file(fleet, "waiting", f"until test -e {go}; do sleep 0.05; done"))
    seen = fleet.home / "watch.log"
    watching = subprocess.Popen([str(BIN / "ablate"), "watch", "waiting"], env=vic.environment, stdout=open(seen, "wb"), stderr=subprocess.STDOUT)
    fleet.until(lambda: seen.stat().st_size > 0, "he watches")
    expect(ada.ablate("token", "revoke", made["id"]).returncode == 0, "his token is revoked meanwhile")
    watching.wait(60)
    said = seen.read_text()
    expect(watching.returncode == 2 and said.strip().splitlines()[-1].endswith("this token is revoked"), f"his watch ends: {said!r}")
    one_line(vic.ablate("ls"), 2, "this token is revoked", "and he reads no more")

    worker_id = next(t["id"] for t in json.loads(ada.ablate("token", "ls", "--json").stdout)["tokens"] if t["role"] == "TOKEN_ROLE_WORKER")
    ada.ablate("token", "revoke", worker_id)
    fleet.until(lambda: not any(w["connected"] for w in fleet.json("workers")["workers"]), "a worker whose token is revoked is out at once")
    fleet.until(lambda: "this token is revoked" in (fleet.home / "first.log").read_text(), "and says why")
    go.touch()

    lines = fleet.json("audit")["lines"]
    expect(any(line["who"] == "admin" and line["what"] == "Submit" and line["outcome"] == "ok" for line in lines), "the audit has who submitted")
    expect(any(line["who"] == "vic" and line["what"] == "Submit" and "role viewer" in line["outcome"] for line in lines), "and who was refused")
    secrets = [file.read_text().strip() for file in [*folder.glob("*.token"), fleet.home / "vic.token", fleet.home / "first" / "token"]]
    for log in [*fleet.home.glob("*.log"), fleet.store]:
        text = log.read_bytes()
        expect(not any(secret.encode() in text for secret in secrets), f"no token in {log.name}")

    # as if the answer to its join had been lost, and its token revoked before it asked again
    fleet.kill("first")
    (fleet.home / "first" / "token").rename(fleet.home / "first" / "token.joining")
    again = fleet.home / "again.token"
    ada.ablate("token", "create", "--role", "join", "--name", "again", "--out", again)
    fleet.start("first again", "ablate-worker", "--scheduler", address, "--ca", folder / "ca.crt", "--join-token-file", again, "--home",
                fleet.home / "first", "--name", "first", "--slots", 1)
    fleet.until(lambda: any(w["name"] == "first" and w["connected"] for w in fleet.json("workers")["workers"]), "it joins with another one")


def other_users_only_look():
    """Of a dashboard without a sign-in: whoever is on the machine reads, and its user's programs alone have something done."""
    with Fleet("access-local") as fleet:
        fleet.start_scheduler()
        fleet.ablate("submit", sweep_file(fleet, "mine"))
        found = fleet.until(lambda: re.search(r"http://127\.0\.0\.1:(\d+)/", (fleet.home / "scheduler.log").read_text()), "it says where its dashboard is")

        def ask():
            connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=60)
            connection.request("GET", "/api/v1/whoami")
            who = json.loads(connection.getresponse().read())
            connection.request("POST", "/api/v1/actions/CancelSweep", '{"sweep":"mine"}',
                               {"Content-Type": "application/json", "Sec-Fetch-Site": "same-origin"})
            answer = connection.getresponse()
            return who["may"], who["read_only"], answer.status, json.loads(answer.read()).get("message", "")

        def ask_as(user):
            """In a process of its own, without another program: that user may not be able to read one."""
            "localhost".encode("idna")  # a module that a connection loads
            reader, writer = os.pipe()
            child = os.fork()
            if child == 0:
                try:
                    os.setgroups([])
                    os.setgid(user)
                    os.setuid(user)
                    os.write(writer, json.dumps(ask()).encode())
                except Exception as error:
                    os.write(writer, json.dumps([[], repr(error), 0, ""]).encode())
                finally:
                    os._exit(0)
            os.close(writer)
            with open(reader, "rb") as said:
                text = said.read()
            os.waitpid(child, 0)
            return json.loads(text)

        if os.geteuid() == 0:
            may, why, status, message = ask_as(65534)
            expect(may == [] and "only programs of the user who runs it" in why, f"another user may do nothing: {may}, {why}")
            expect(status == 403 and message == why, f"and is refused: {status} {message}")
            expect(fleet.json("show", "mine")["summary"]["state"] == "SWEEP_STATE_ACTIVE", "nothing was done")
        else:
            say("SKIPPED: another user's program, since this is not root")
        may, _, status, message = ask()
        expect("CancelSweep" in may and status == 200, f"its own user may: {status} {message}")
        expect(fleet.json("show", "mine")["summary"]["state"] == "SWEEP_STATE_CANCELLED", "and it is done")


def main():
    other_users_only_look()
    with Fleet("access") as fleet:
        folder = made_in_one_command(fleet)
        scheduler_refusals(fleet, folder)
        ada, address = a_sweep_over_tls(fleet, folder, free_port())
        looked_at_by_the_doctor(fleet, folder, ada, address)
        whoever_revokes_their_own(fleet, folder, ada, address)
        crowds_keep_nobody_out(fleet, folder, address)
        a_new_certificate(fleet, folder, ada, address)
        the_dashboard(fleet, folder, ada, address)
        who_does_not_get_in(fleet, folder, ada, address)
    mutual_tls()


if __name__ == "__main__":
    main()
