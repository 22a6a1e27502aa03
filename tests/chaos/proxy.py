# SPDX-License-Identifier: Apache-2.0
"""What lies between a worker and its scheduler: a TCP port of this machine that leads to a socket, and can be a bad network."""
import asyncio
import random
import threading

CHUNK = 1 << 16
HEAD = 5  # bytes before what a record of TLS holds: its kind, version and length


class Network:
    """One thread for all proxies. Their methods may be called from any."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def begin(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def run(self, coroutine):
        return self.begin(coroutine).result(10)

    def proxy(self, target, host="127.0.0.1", tls=False):
        """`target`: the path of a Unix socket, or (host, port), which then sees a caller from `host`."""
        proxy = Proxy(self, target, host, tls)
        self.run(proxy.listen())
        return proxy


class Records:
    """Where in one way of a connection the records of TLS end."""

    def __init__(self):
        self.head, self.left = b"", 0

    def take(self, piece):
        """Returns: whether `piece` ends where a record does."""
        while piece:
            if self.left:
                taken = min(self.left, len(piece))
                self.left, piece = self.left - taken, piece[taken:]
                continue
            lacking = HEAD - len(self.head)
            self.head, piece = self.head + piece[:lacking], piece[lacking:]
            if len(self.head) == HEAD:
                self.left, self.head = int.from_bytes(self.head[3:], "big"), b""
        return not self.left and not self.head


class Proxy:
    PLAIN = ("pass", "delay", "to the scheduler only", "to the worker only", "nothing passes", "refuse")

    def __init__(self, network, target, host, tls):
        self.network, self.target, self.host, self.tls = network, target, host, tls
        self.MODES = (*self.PLAIN, "in drops") if tls else self.PLAIN
        self.mode, self.delay = "pass", 0.0
        self.spoil = None  # what becomes of the next piece: "cut" or "turn"
        self.writers = set()
        self.changed = asyncio.Event()

    async def listen(self):
        self.server = await asyncio.start_server(self.serve, self.host, 0)
        self.address = "%s:%d" % (self.host, self.server.sockets[0].getsockname()[1])

    def set(self, mode, delay=0.0):
        """`delay`: seconds that each piece takes in that mode."""
        def change():
            self.mode, self.delay = mode, delay
            self.changed.set()
            self.changed = asyncio.Event()
        self.network.loop.call_soon_threadsafe(change)

    def cut(self):
        """Ends every connection, as where a cable is pulled: what was on its way is gone."""
        def abort():
            for writer in list(self.writers):
                writer.transport.abort()
        self.network.loop.call_soon_threadsafe(abort)

    def cut_in_record(self):
        """The next piece that comes ends in the middle of a record of TLS, and its connection with it."""
        self.spoil = "cut"

    def turn_a_bit(self):
        """The next piece that comes leaves with another bit in it."""
        self.spoil = "turn"

    async def connect(self):
        if isinstance(self.target, str):
            return await asyncio.open_unix_connection(self.target)
        return await asyncio.open_connection(*self.target, local_addr=(self.host, 0))

    async def serve(self, from_worker, to_worker):
        self.writers.add(to_worker)
        to_scheduler = None
        try:
            if self.mode == "refuse":
                return
            from_scheduler, to_scheduler = await self.connect()
            self.writers.add(to_scheduler)
            ways = [asyncio.ensure_future(self.carry(from_worker, to_scheduler, "to the worker only")),
                    asyncio.ensure_future(self.carry(from_scheduler, to_worker, "to the scheduler only"))]
            _, pending = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in pending:
                way.cancel()
        except OSError:
            pass  # nobody listens there just now
        finally:
            for writer in (to_worker, to_scheduler):
                if writer:
                    self.writers.discard(writer)
                    writer.close() if self.tls and random.random() < 0.5 else writer.transport.abort()

    async def carry(self, reader, writer, blocked_by):
        records = Records()
        try:
            while piece := await reader.read(CHUNK):
                while self.mode in (blocked_by, "nothing passes"):
                    await self.changed.wait()
                if self.mode == "delay":
                    await asyncio.sleep(self.delay)
                spoil, self.spoil = self.spoil, None
                at_end = records.take(piece)
                if spoil == "cut":
                    piece = piece[:-1] if at_end else piece
                elif spoil == "turn":
                    at = random.randrange(len(piece))
                    piece = piece[:at] + bytes([piece[at] ^ 1 << random.randrange(8)]) + piece[at + 1:]
                while piece:
                    drop = piece[:random.randint(1, 100)] if self.mode == "in drops" else piece
                    writer.write(drop)
                    await writer.drain()
                    piece = piece[len(drop):]
                    if piece:
                        await asyncio.sleep(0.002)
                if spoil == "cut":
                    return
        except OSError:
            pass
