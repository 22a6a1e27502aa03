# SPDX-License-Identifier: Apache-2.0
"""Who is told what happens: a receiver of one's own hears of a failed row, a significant cell and a complete sweep, signed and each once,
also where it was away and the scheduler was killed meanwhile."""
import hashlib
import hmac
import http.server
import json
import re
import threading

from fleet import Fleet, expect, say

SECRET = "a secret of sixteen letters"
TRIAL = """[ "$1" = bad ] && { echo broken >&2; exit 3; }
echo '{"event": "metric", "step": 1, "values": {"acc": '"$1.$2"'}}'
"""


class Receiver(http.server.ThreadingHTTPServer):
    def __init__(self, port=0):
        self.posts = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(handler):
                body = handler.rfile.read(int(handler.headers["Content-Length"]))
                self.posts.append((handler.path, dict(handler.headers), body))
                handler.send_response(200)
                handler.end_headers()

            def log_message(handler, *_):
                pass

        super().__init__(("127.0.0.1", port), Handler)
        self.thread = threading.Thread(target=self.serve_forever)
        self.thread.start()

    def end(self):
        self.shutdown()
        self.server_close()
        self.thread.join()

    def told(self, path="/own"):
        return [json.loads(body) for at, _, body in self.posts if at == path]


def submit(fleet, name, rows, seeds):
    """Rows by the whole part of their metric; a seed is the digit behind it."""
    sweep = {"ablate": 1, "name": name, "retry": {"max": 0}, "seeds": seeds,
             "command": {"argv": ["sh", "-c", TRIAL, "trial", "{params.mean}", "{seed}"], "params": {"mean": "0"}},
             "rows": [{"id": row, "set": {"params.mean": mean}} for row, mean in rows.items()],
             "table": {"baseline": next(iter(rows)), "columns": [{"name": "acc", "metric": "acc", "better": "higher"}]}}
    file = fleet.home / f"{name}.yaml"
    file.write_text(json.dumps(sweep))
    fleet.ablate("submit", file)


def main():
    with Fleet("webhooks") as fleet:
        receiver = Receiver()
        port = receiver.server_address[1]
        (fleet.home / "url").write_text(f"http://127.0.0.1:{port}/chat/token-of-the-chat\n")
        (fleet.home / "url").chmod(0o600)
        file = fleet.home / "webhooks.yaml"
        file.write_text(f"""webhooks:
  own: {{url: "http://127.0.0.1:{port}/own", secret: {SECRET}}}
  chat: {{url_file: url, body: slack, events: [row-failed]}}
""")
        file.chmod(0o600)

        say("a test, from the command line")
        fleet.ablate("webhook", "test", file)
        expect([body["event"] for body in receiver.told()] == ["test"] and len(receiver.posts) == 2, "each gets one")
        done = fleet.ablate("webhook", "test", file, "chatt", check=False)
        expect(done.returncode == 2 and "did you mean 'chat'?" in done.stderr, done.stderr.strip())
        receiver.posts.clear()

        say("a scheduler tells")
        options = ("--webhooks", file, "--webhooks-between-ms", 200)
        fleet.start_scheduler(*options)
        fleet.start_worker("w", "--slots", 2, "--allow-commands")
        submit(fleet, "study", {"base": "70", "better": "75", "broken": "bad"}, 3)
        fleet.until(lambda: any(post["event"] == "sweep-complete" for post in receiver.told()), "the sweep is told as complete")
        told = receiver.told()
        failed = [trial for post in told if post["event"] == "row-failed" for trial in post["trials"]]
        expect(sorted((trial["row"], trial["seed"]) for trial in failed) == [("broken", seed) for seed in range(3)], "each failed trial, once")
        expect(all("exit code 3" in trial["reason"] for trial in failed), failed[0]["reason"])
        cells = [cell for post in told if post["event"] == "cell-significant" for cell in post["cells"]]
        expect([(cell["row"], cell["verdict"]) for cell in cells] == [("better", "better")], f"the significant cell, once: {cells}")
        (complete,) = [post for post in told if post["event"] == "sweep-complete"]
        expect(complete["trials"]["failed"] == 3 and complete["trials"]["completed"] == 6, complete["text"])
        expect(re.fullmatch("http://127.0.0.1:[0-9]+/sweeps/study", complete["url"]), complete["url"])
        for path, headers, body in receiver.posts:
            if path == "/own":
                signature = "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
                assert headers["Ablate-Signature"] == signature, headers
        chat = receiver.told("/chat/token-of-the-chat")
        expect(chat and all(list(post) == ["text"] and "broken, seed" in post["text"] for post in chat), "a chat hears of the failures alone")

        say("the receiver is away, the scheduler is killed, both come again")
        receiver.end()
        submit(fleet, "later", {"base": "70"}, 1)
        fleet.wait_for("later")
        fleet.until(lambda: "was not taken" in (fleet.home / "scheduler.log").read_text(), "a post was tried in vain")
        fleet.kill("scheduler")
        receiver = Receiver(port)
        fleet.start_scheduler(*options)
        fleet.until(lambda: receiver.told(), "the next scheduler tells it")
        expect([(post["event"], post["sweep"]) for post in receiver.told()] == [("sweep-complete", "later")], "what was told before is not told again")
        expect("token-of-the-chat" not in (fleet.home / "scheduler.log").read_text(), "no log has the chat's address")
        receiver.end()

        say("what is wrong with a file")
        file.write_text("webhooks:\n  own:\n    url: http://example.org/\n")
        done = fleet.ablate("up", "--webhooks", file, check=False)
        expect(done.returncode == 2 and "webhooks.yaml:3:10: webhooks.own.url: expected https" in done.stderr, done.stderr.strip())
        say("done")


main()
