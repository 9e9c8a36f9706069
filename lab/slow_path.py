"""A way to the API server on which every answer takes longer. Runs in the lab's network while somebody's path is slow.

The packets of those whose path is slow are redirected here; the kernel knows where they wanted to go.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import sys
from collections.abc import Coroutine

SO_ORIGINAL_DST = 80  # linux/netfilter_ipv4.h; Python has no name for it
CHUNK = 65536
WAITING_AT_MOST = 256  # chunks


async def serve(port: int, seconds: dict[str, float]) -> None:
    async def connected(client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        try:
            server, to_server = await asyncio.open_connection(*destination(to_client.get_extra_info("socket")))
        except OSError:
            to_client.transport.abort()  # a reset, which is the nearest to the refusal that the client would have got
            return
        peer = to_client.get_extra_info("peername")[0]
        try:
            await both(pass_on(client, to_server, 0), pass_on(server, to_client, seconds.get(peer, seconds.get("others", 0))))
        except OSError:  # one of the two is gone, so the other one has to know
            to_client.transport.abort()
            to_server.transport.abort()
        finally:
            to_client.close()
            to_server.close()

    listener = await asyncio.start_server(connected, "0.0.0.0", port)
    await listener.serve_forever()


async def pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter, seconds: float) -> None:
    """Each chunk that much later, but as many at a time as come."""
    waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(WAITING_AT_MOST)
    now = asyncio.get_running_loop().time

    async def deliver() -> None:
        while True:
            due, chunk = await waiting.get()
            await asyncio.sleep(max(0, due - now()))
            if not chunk:
                target.write_eof()
                return
            target.write(chunk)
            await target.drain()

    async def collect() -> None:
        chunk = b"first"
        while chunk:
            chunk = await source.read(CHUNK)
            await waiting.put((now() + seconds, chunk))

    await both(deliver(), collect())


async def both(one: Coroutine, other: Coroutine) -> None:
    """Until both have ended; when one fails, the other does not go on."""
    tasks = [asyncio.create_task(one), asyncio.create_task(other)]
    done, unfinished = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    for task in unfinished:
        task.cancel()
    for task in done:
        task.result()


def destination(redirected: socket.socket) -> tuple[str, int]:
    _family, port, address = struct.unpack_from("!HH4s", redirected.getsockopt(socket.SOL_IP, SO_ORIGINAL_DST, 16))
    return socket.inet_ntoa(address), port


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), json.loads(sys.argv[2])))
