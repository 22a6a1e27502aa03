# SPDX-License-Identifier: Apache-2.0
"""What lies between a worker and its scheduler: a TCP port of this machine that leads to a Unix socket, and can be a bad network."""
import asyncio
import threading


class Network:
    """One thread for all proxies. Their methods may be called from any."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(10)

    def proxy(self, target):
        proxy = Proxy(self, target)
        self.run(proxy.listen())
        return proxy


class Proxy:
    MODES = ("pass", "delay", "to the scheduler only", "to the worker only", "nothing passes", "refuse")

    def __init__(self, network, target):
        self.network, self.target = network, target
        self.mode, self.delay = "pass", 0.0
        self.writers = set()
        self.changed = asyncio.Event()

    async def listen(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.address = "127.0.0.1:%d" % self.server.sockets[0].getsockname()[1]

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

    async def serve(self, from_worker, to_worker):
        self.writers.add(to_worker)
        to_scheduler = None
        try:
            if self.mode == "refuse":
                return
            from_scheduler, to_scheduler = await asyncio.open_unix_connection(self.target)
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
                    writer.transport.abort()

    async def carry(self, reader, writer, blocked_by):
        try:
            while piece := await reader.read(1 << 16):
                while self.mode in (blocked_by, "nothing passes"):
                    await self.changed.wait()
                if self.mode == "delay":
                    await asyncio.sleep(self.delay)
                writer.write(piece)
                await writer.drain()
        except OSError:
            pass
