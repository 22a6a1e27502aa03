# SPDX-License-Identifier: Apache-2.0
"""HyperQueue's side of `bench.py noop`, for a Python that has its package: `hyperqueue_side.py TASKS…`, a server and a worker of two cores in
this process's children. Prints, for each number of tasks, the seconds until its client knows that all have ended, which it looks at once a
second. Nothing is stored: there is no journal."""
import contextlib
import io
import sys
import time

from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig

with LocalCluster() as cluster:
    cluster.start_worker(WorkerConfig(cores=2))
    client = cluster.client()
    for tasks in map(int, sys.argv[1:]):
        job = Job()
        for _ in range(tasks):
            job.program(["/bin/true"], stdout=None, stderr=None)
        start = time.perf_counter()
        with contextlib.redirect_stderr(io.StringIO()):  # a bar of its progress
            client.wait_for_jobs([client.submit(job)])
        print(time.perf_counter() - start, flush=True)
