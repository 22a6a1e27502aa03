#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what fuzzing begins with into tests/fuzz/corpus: one small well-formed input, or a few, for each target.

What was found later lies beside it under names of its own and is left alone. Needs protoc.
"""
import json
import pathlib
import struct
import subprocess

HERE = pathlib.Path(__file__).parent
PROTO = HERE.parent.parent / "proto"


def write(target, name, data):
    folder = HERE / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())


def encode(message, text):
    return subprocess.run(
        ["protoc", f"-I{PROTO}", f"--encode=ablate.v1.{message}", *sorted(str(p) for p in PROTO.rglob("*.proto"))],
        input=text.encode(), stdout=subprocess.PIPE, check=True).stdout


def varint(number):
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def checkpoint():
    facts = {"format": 1, "config_hash": "ab" * 32, "step": 400, "evaluated": 390, "loss_sum": 12.5, "correct": 31, "seen": 64,
             "best": 75.25, "data_fingerprint": "folder-1:x", "weights": {"init": "cd" * 32}, "model": "{\"model\":{}}",
             "machine": {"torch": "2.13.0", "device": "cpu", "instructions": "AVX512", "threads": 2, "ranks": 1,
                         "deterministic": True}}
    write("checkpoint", "all", json.dumps(facts))
    del facts["best"], facts["weights"], facts["model"], facts["machine"]["ranks"]
    write("checkpoint", "few", json.dumps(facts))


def safetensors():
    def file(header, data):
        text = json.dumps(header).encode()
        return struct.pack("<Q", len(text)) + text + data
    write("safetensors", "two", file({"__metadata__": {"format": "pt"},
                                      "a": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]},
                                      "b": {"dtype": "I64", "shape": [], "data_offsets": [8, 16]}}, bytes(16)))
    write("safetensors", "none", file({}, b""))
    write("safetensors", "empty-tensor", file({"a": {"dtype": "BF16", "shape": [0, 3], "data_offsets": [0, 0]}}, b""))


def packed_file():
    def entry(offset, label):
        return struct.pack("<QIIIIII", offset, 6, label, 2, 1, 1, 0)
    def text(words):
        return struct.pack("<I", len(words)) + words.encode()
    notes = text("one file")
    index = struct.pack("<IIII", 2, 1, 2, 0) + entry(4096, 0) + entry(4102, 1) + entry(4108, 1)
    index += text("folder-1:x") + text("raw") + text("a") + text("b")
    write("packed_file", "three", bytes([len(notes)]) + index + notes)
    write("packed_file", "no-notes", b"\0" + index)


    def annotated(offset):
        return struct.pack("<QIIIIIIIII", offset, 6, 0, 2, 1, 1, 0, 5, 0, 0)
    index = struct.pack("<IIII", 1, 1, 1, 0) + annotated(4096) + annotated(4107) + text("coco-1:x") + text("") + text("dog")
    index += struct.pack("<I", 1) + text("wall")
    write("packed_file", "annotated", b"\0" + index)


def annotations():
    """A byte each for width and height, then counts, corners, stored truths or a JSON file: each is read as all of them."""
    write("annotations", "counts", b"\x04\x03" + b"233a00")
    write("annotations", "corners", b"\x20\x18" + struct.pack("<10d", 2, 3, 20.5, 1, 31, 22, 7.25, 23, -4, 12))
    def thing(shape):
        return struct.pack("<I5dB", 1, 2, 3, 8, 5, 40, 0) + shape
    polygon = struct.pack("<BII6d", 1, 1, 6, 2, 3, 10, 3, 10, 8)
    runs = struct.pack("<BI", 2, 6) + b"233a00"
    write("annotations", "truths", b"\x04\x03" + struct.pack("<BI", 0, 3) + thing(b"\0") + thing(polygon) + thing(runs))
    write("annotations", "coco", b"\x04\x03" + json.dumps({
        "images": [{"id": 9, "file_name": "b.jpg", "width": 4, "height": 3}],
        "annotations": [{"id": 1, "image_id": 9, "category_id": 18, "bbox": [1, 1, 2, 2], "area": 4, "iscrowd": 0, "segmentation": [[1, 1, 3, 1, 3, 3]]},
                        {"id": 2, "image_id": 9, "category_id": 18, "bbox": [0, 0, 1, 3], "iscrowd": 1, "segmentation": {"size": [3, 4], "counts": [0, 3, 9]}},
                        {"id": 3, "image_id": 9, "category_id": 18, "bbox": [0, 0, 1, 3], "segmentation": {"size": [3, 4], "counts": "03900"}}],
        "categories": [{"id": 18, "name": "dog"}]}).encode())


def event_file():
    def masked_crc32c(data):
        crc = 0xFFFFFFFF
        for byte in data:
            crc ^= byte
            for _ in range(8):
                crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        crc ^= 0xFFFFFFFF
        return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF

    def record(data):
        length = struct.pack("<Q", len(data))
        return length + struct.pack("<I", masked_crc32c(length)) + data + struct.pack("<I", masked_crc32c(data))

    def field(number, data):
        return varint(number << 3 | 2) + varint(len(data)) + data

    def event(step, tag, value):
        return record(b"\x09" + struct.pack("<d", 1.5e9) + b"\x10" + varint(step) + field(5, field(1, field(1, tag) + value)))
    first = record(field(3, b"brain.Event:2"))
    write("event_file", "scalars", first + event(1, b"acc", b"\x15" + struct.pack("<f", 0.1)) +
          event(300, b"loss", b"\x15" + struct.pack("<f", float("nan"))))
    tensors = [(1, b"\x2d" + struct.pack("<f", 0.5)), (1, field(5, struct.pack("<f", 0.5))), (2, field(4, struct.pack("<d", 0.5))),
               (9, b"\x50" + varint(7)), (19, b"\x68" + varint(0x3C00)), (7, field(8, b"text"))]
    write("event_file", "tensors", b"".join(event(i, b"t", field(8, b"\x08" + varint(dtype) + value))
                                            for i, (dtype, value) in enumerate(tensors)))


def table_rows():
    write("table_rows", "csv", b"\xef\xbb\xbfepoch,acc,\"no\"\"te\"\r\n1,0.5,\"a\nb\"\r\n2,nan,\r\n3,1,234")
    write("table_rows", "semicolons", "# made by x\n# a;b\n1;0,5\n\n2;-1e400\n")
    write("table_rows", "json", '{"step": 1, "val": {"acc": NaN}}\n{"step": "2", "x": [1], "y": "97.3%"}\n{oops\n[]\n')


def imported_results():
    write("imported_results", "wide", b"\xef\xbb\xbfname;seed;epoch;acc;opt\r\nbase;0;1;0.5;sgd\r\n\"b;\"\"1\";1;2;1e-3;\"a\nb\"\r\n")
    write("imported_results", "long", "sweep,row,seed,trial,run,metric,step,value,time_ms\nmsf,a,3,7,9,acc,10,nan,1700000000123\n")
    write("imported_results", "wandb", '"Step","sun-1 - acc","sun-1 - acc__MIN","red-2 - acc"\n"10","0.5","0.5",""\n')
    write("imported_results", "history", '{"acc": 0.5, "nested": {"loss": NaN}, "_step": 3, "_timestamp": 1700000000.5}\n'
          '{"event": "metric", "step": 4, "values": {"acc": 1}}\n\n{"_step": 5, "opt": "sgd", "x": [1], "y": null}\n')
    write("imported_results", "mlflow", "1700000000123 0.25 0\n1700000000456 0.5 0\n1 nan 0\n")
    write("imported_results", "events", (HERE / "corpus/event_file/scalars").read_bytes())


def trainer_output():
    lines = [{"event": "start", "total_steps": 100, "images_per_step": 8, "data_fingerprint": "f", "environment": {"torch": "2"}},
             {"event": "metric", "step": 10, "values": {"train/loss": 1.5, "val/top1": "nan"}},
             {"event": "metric", "step": 3.0, "values": {"train/loss": 1e400}},
             {"event": "log", "level": "warning", "text": "slow \u001b[31m disk"},
             {"event": "checkpoint", "step": 10, "path": "checkpoint-10.safetensors", "sha256": "ab" * 32,
              "best": "best.safetensors"},
             {"event": "rendezvous", "address": "10.0.0.1:29500"},
             {"event": "rendezvous", "address": "--join=x:1"},
             {"event": "end", "status": "failed", "reason": "CUDA out of memory", "retryable": False,
              "fault": {"part": "disk", "needed_bytes": 10}}]
    write("trainer_output", "log", "e1 0.5\ne1 0.6\re2 \x1b[1m0.7\x1b[0m\b\b\be3 1,234\r\ne4 n/a\ne5 97.3%")
    write("trainer_output", "all", "".join(json.dumps(line) + "\n" for line in lines))
    write("trainer_output", "log", "epoch 1: \rbar 10%\rbar 20%\nTraceback:\n  No space left on device\n{\"event\": 3}\n{}\n")


def trial_document():
    write("trial_document", "msf", json.dumps({"model": {"preset": "simple-vit-ti", "attention": {"share": "QQQ-W"}},
                                               "data": {"name": "shapes"}, "recipe": {"use": "demo", "lr": 1e-3}, "seed": 3}))
    write("trial_document", "key", json.dumps({"model": {"family": "key-vit", "key": {"kind": "spatial", "charts": 4}},
                                               "data": {"name": "cifar-10", "image_size": 32}, "recipe": {}, "seed": 0}))
    plugin = {"name": "linear", "sha256": "0a" * 32, "options": {"map": "elu", "eps": 1e-6, "width": 8.0, "deep": True}}
    write("trial_document", "plugged", json.dumps({"model": {"family": "vit", "dim": 32, "depth": 2, "heads": 2, "plugin": plugin},
                                                   "data": {"name": "shapes"}, "recipe": {"use": "demo"}, "seed": 0}))
    write("trial_document", "plugin", json.dumps({"model": {"family": "plugin", "plugin": plugin}, "data": {"name": "shapes"},
                                                  "recipe": {"use": "demo"}, "seed": 0}))
    for preset in ("xcit-tiny-12", "swin-t", "resnet-50", "deit-s", "regnety-4gf", "efficientnet-b0"):
        write("trial_document", preset, json.dumps({"model": {"preset": preset}, "data": {"name": "imagenet-1k"},
                                                    "recipe": {"use": "xcit-imagenet"}, "seed": 1}))


def labels():
    write("labels", "colours", b"row \x1b[31;1ma\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x07 \x1b(B\xc2\x9b31m")
    write("labels", "directions", "a\u202eb\u2066c\u200fd \u0000\u0007\b\x7f tab\tline\r\nbar\rbar\n".encode())
    write("labels", "wide", "注意 é e\u0301 👩‍🔬 \ufffd".encode() + b"\xff\xc0\x80\xed\xa0\x80")


def words():
    for name, text in {"address": "[::1]:7070", "socket": "unix:/tmp/a.sock", "duration": "90d",
                       "expression": "(acc - baseline.'top-1') / max(2, log10(params)) - paper.acc",
                       "checkpoint": "checkpoint-400.safetensors", "pattern": "(?i)out of mem(ory)?$|^epoch \\d+",
                       "places": "--lr={params.lr} {{x}} ${lr} {seed} {a['b']}", "token": "abl_0123456789ab_" + "A" * 43}.items():
        write("words", name, text)


def http_request():
    def get(target, *fields):
        return "\r\n".join([f"GET {target} HTTP/1.1", "Host: localhost:8080", *fields, "", ""])
    for name, target in {"sweeps": "/api/v1/sweeps", "sweep": "/api/v1/sweeps/msf-sharing",
                         "table": "/api/v1/sweeps/msf-sharing/table?rows=3&after=a", "runs": "/api/v1/runs?sweep=msf-sharing&limit=2",
                         "run": "/api/v1/runs/1", "log": "/api/v1/runs/1/log?offset=0&limit=10",
                         "metrics": "/api/v1/metrics?runs=1,2&name=val%2Ftop1&points=100", "workers": "/api/v1/workers"}.items():
        write("http_request", name, get(target))
    write("http_request", "cross-site", get("/api/v1/sweeps", "Origin: http://evil.example", "Sec-Fetch-Site: cross-site",
                                             "Sec-Fetch-Mode: no-cors", "Cookie: a=b", "Accept-Encoding: gzip"))


def worker_messages():
    def stream(*texts):
        return b"".join(varint(len(m)) + m for m in (encode("WorkerMessage", text) for text in texts))
    hello = ('hello {lowest_protocol: 1 highest_protocol: 1 name: "w" host: "h" instance: "i" result_version: 9 data: "shapes" '
             'slots {index: 0 device: "cpu"} slots {index: 1 device: "cpu"} takes_several: true}')
    write("worker_messages", "hello", stream(hello))
    write("worker_messages", "run", stream(
        hello, 'batch {run: 0 seq: 1 started {total_steps: 100 data_fingerprint: "f" bit_exact: true}}',
        'batch {run: 0 seq: 2 series {name: "val/top1" steps: 50 values: 70 times_ms: 1} log: "line\\n"'
        ' checkpoints {step: 50 path: "/r/c" sha256: "ab"}}',
        'heartbeat {runs: 0}', 'batch {run: 0 seq: 3 ended {status: STATUS_COMPLETED}}'))
    write("worker_messages", "leader", stream(
        hello, 'batch {run: 0 seq: 1 started {total_steps: 9} rendezvous: "[fe80::1%eth0]:29500"}',
        'batch {run: 1 seq: 1 rendezvous: "--run-dir\\n/x"}'))
    write("worker_messages", "several", stream(
        hello, 'more {batch {run: 0 seq: 1 started {total_steps: 9}}} more {refused {run: 1 reason: "no data" permanent: true}}'
        ' heartbeat {runs: 0 runs: 1}',
        'batch {run: 0 seq: 2 ended {status: STATUS_FAILED reason: "x" retryable: true exit_code: 1}}'))


def client_call():
    requests = {2: ("SubmitRequest", 'file {path: "a.yaml" text: "ablate: 1\\nname: a\\nrows: []\\n"}'),
                0: ("ValidateRequest", 'file {path: "a.yaml" text: "ablate: 1\\n"}'),
                4: ("ListSweepsRequest", ""), 5: ("SweepRequest", 'sweep: "demo"'), 6: ("SweepRequest", 'sweep: "demo"'),
                7: ("SweepRequest", 'sweep: "demo"'), 8: ("SweepRequest", 'sweep: "demo"'),
                16: ("ListRunsRequest", 'sweep: "demo"'), 17: ("RunRequest", "run: 1"),
                18: ("GetMetricsRequest", 'runs: 1 runs: 2 names: "val/top1"'), 19: ("TailLogRequest", "run: 1"),
                20: ("SweepRequest", 'sweep: "demo"'), 22: ("ListWorkersRequest", ""), 27: ("WhoAmIRequest", ""),
                28: ("CreateTokenRequest", 'id: "abl_0123456789ab" name: "a" role: TOKEN_ROLE_VIEWER'), 29: ("ListTokensRequest", ""),
                33: ("PutPieceRequest", f'blob {{sha256: "{"ab" * 32}" bytes: 9 run: 1 token: "t"}} offset: 0 piece: "x"'),
                34: ("GetPieceRequest", f'blob {{sha256: "{"ab" * 32}" run: 1 token: "t"}} most: 9 damaged: true'),
                35: ("PutPieceRequest", f'blob {{sha256: "{"ab" * 32}" bytes: 9}} piece: "x"'),
                36: ("PushDataRequest", f'name: "set" sha256: "{"ab" * 32}" fingerprint: "f" bytes: 9'),
                37: ("RemoveDataRequest", 'name: "set"'), 38: ("ListDataRequest", ""),
                39: ("RepinDataRequest", 'name: "shapes" fingerprint: "f"')}
    for method, (message, text) in requests.items():
        write("client_call", f"{method:02}-{message}", bytes([method]) + encode(message, text))


def fleet_file():
    write("fleet_file", "small", "scheduler: head:7071\nqueues:\n  a: {launcher: slurm, workers: {min: 0, max: 8}, time_limit: 8h,"
          " gpus: 1, program: /opt/ablate-worker, home: /scratch/ablate}\n")


    write("fleet_file", "ssh", "scheduler: head:7071\nca: system\nqueues:\n  desk: {launcher: ssh, hosts: [w1, {host: ada@w2, slots: 2,"
          " data: {a: /b}}], bundle: w.tar.gz, data: {a: /a}, ssh_config: c, home: x/y, worker_arguments: [--threads, '4']}\n")
    write("fleet_file", "kubernetes", "scheduler: head:7071\nkubernetes: {server: 'https://1:2', service_account: /a}\nqueues:\n"
          "  k: {launcher: kubernetes, workers: 2, time_limit: 1h, image: i, program: /p, home: /h, volumes: {c: /w},"
          " node_selector: {a: b}, tolerations: [t], run_as_user: 5, memory: 64G, max_gpu_hours: 3, gpus: 1}\n")


def depot_messages():
    def pieces(*texts):
        return b"".join(varint(len(m)) + m for m in (encode("PutPieceRequest", text) for text in texts))
    write("depot_messages", "honest", pieces(
        *(f'blob {{sha256: "{file}" run: {1 + 8 * owner}}} offset: 400' for file in "abcd" for owner in (0, 1) for _ in range(3)),
        'blob {sha256: "c" run: 2 bytes: 300} offset: 100', 'blob {sha256: "b" run: 3}', 'blob {run: 6} offset: 5',
        'blob {sha256: "d" run: 9} offset: 900', 'blob {run: 7}', 'blob {sha256: "d" run: 9} offset: 900',
        'blob {sha256: "c" run: 12}', 'blob {sha256: "a" run: 5}'))
    write("depot_messages", "lies", pieces(
        'blob {sha256: "b" bytes: 30 run: 8} piece: "x"', 'blob {sha256: "b" bytes: 30 run: 8} offset: 1 piece: "yyyyyyyyyyyyyyyyyyyyyyyyyyyyy"',
        'blob {sha256: "../../x" bytes: 3 run: 8} piece: "x"', 'blob {sha256: "c" bytes: 700 run: 8} piece: "cccccccc"',
        'blob {sha256: "c" bytes: 4 run: 8} offset: 8', 'blob {run: 7}', 'blob {sha256: "c" run: 9} offset: 800',
        f'blob {{sha256: "{"ab" * 32}" bytes: {2**63} run: 8}} offset: {2**64 - 1} piece: "x"'))


def machine_answers():
    write("machine_answers", "pilots", "Welcome!\nablate-machine 1790000000\nablate-pilot desk-fd851309ed3c|running|1789999000|||\n"
          "ablate-pilot desk-0123456789ab|exited|1789999000|1789999500|3|no | \u001b[31m room\n"
          "ablate-pilot desk-1123456789ab|exited|1|2|gone|\nablate-pilot desk-2123456789ab|starting|1789999990|||\n"
          "ablate-pilot desk-3123456789ab|rebooted||||\nablate-pilot desk-4123456789ab|killed||||\n")
    write("machine_answers", "clock", "ablate-machine 9223372036854775807\nablate-pilot a-0123456789ab|running|0|||\n")
    write("machine_answers", "bundle", "ablate-bundle 1234\n")
    write("machine_answers", "ready", "motd\nablate-bundle ready\n")


def kept_files():
    write("kept_files", "data", json.dumps({"/data/a": {"mark": "1:2 3 4.5", "fingerprint": "folder-1:x"}}))
    write("kept_files", "names", json.dumps({"a": {"sha256": "ab" * 32, "fingerprint": "f", "bytes": 9, "pushed_ms": 1790000000000,
                                                   "by": "ada"}}))
    write("kept_files", "no-digest", json.dumps({"a": {"sha256": "../x", "fingerprint": "f", "bytes": 9, "pushed_ms": 1, "by": ""}}))


def json_request():
    write("json_request", "submit", json.dumps({"file": {"path": "a.yaml", "text": "ablate: 1\n"}, "priority": -3, "weight": "NaN",
                                                 "budget": {"max_gpu_hours": 1.5, "until": "2026-01-31T12:00:00Z"}, "provenance": {"git": {"untracked": [{"bytes": "7"}]}}}))
    write("json_request", "retry", json.dumps({"sweep": "a", "row": "r", "seed": "-9223372036854775808", "rerun": ["a", "b"], "only_held": True}))
    write("json_request", "plan", json.dumps({"file": {}, "calibrations": [{"device": "cpu", "step_seconds": 1e-3}, {}]}))
    write("json_request", "twice", '{"sweep": "a", "sweep": "\\u202e\\u001b[31m"}')
    write("json_request", "unknown", '{"\\u001b[31m": {"swep": []}}')
    write("json_request", "too-large", '{"weight": 1e400}')
    write("json_request", "deep", '{"file":' * 200)


def sweep_file():
    write("sweep_file", "small", "ablate: 1\nname: a\nbase: {model: {preset: simple-vit-ti}, data: {name: shapes}, recipe: {use: demo}}\n"
          "rows: [{id: a, label: A}]\nseeds: [0]\ntable: {columns: [{name: acc, metric: val/top1}]}\n")
    write("sweep_file", "aliases", "a: &a [1, 1]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]\n")
    write("sweep_file", "deep", "a: " + "[" * 200 + "]" * 200 + "\n")


def image():
    write("image", "jpeg", bytes.fromhex(
        "ffd8ffe000104a46494600010100000100010000ffdb004300" + "01" * 64 + "ffc0000b080001000101011100"
        "ffc4001f0000010501010101010100000000000000000102030405060708090a0b"
        "ffc400b5100002010303020403050504040000017d01020300041105122131410613516107227114328191a1082342b1c11552d1f024"
        "33627282090a161718191a25262728292a3435363738393a434445464748494a535455565758595a636465666768696a737475767778"
        "797a838485868788898a92939495969798999aa2a3a4a5a6a7a8a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9"
        "dae1e2e3e4e5e6e7e8e9eaf1f2f3f4f5f6f7f8f9faffda0008010100003f007fffd9"))


for make in (annotations, checkpoint, safetensors, packed_file, event_file, table_rows, imported_results, trainer_output, trial_document, labels, words, http_request, worker_messages,
             client_call, fleet_file, depot_messages, machine_answers, kept_files, json_request, sweep_file, image):
    make()
