"""Frames and requests of a few bytes, thousands at once, from a client that has not said who it is."""

from __future__ import annotations

import json

import pytest

from agentsite.local_services import free_port
from tests.agentsite.processes import run_script
from tests.heartbeat import MOST_SECONDS
from tests.patience import PATIENCE

FRAMES = 60_000
_BEGINNING = """
    import asyncio, base64, json, os, socket, sys, threading, time, traceback
    import django
    django.setup()
    from tests.patience import PATIENCE

    worst, heard, ended = 0.0, 0, threading.Event()

    async def beat():
        global worst
        before = time.thread_time()
        while True:
            await asyncio.sleep(0.001)
            now = time.thread_time()
            worst = max(worst, now - before)
            before = now

    async def application(scope, receive, send):
        global heard, worst
        if scope["type"] == "http":
            if heard == 0:
                beating = asyncio.create_task(beat())
            heard += 1
            await receive()
            await asyncio.sleep(0.1)
            await send({"type": "http.response.start", "status": 204, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        await receive()
        await send({"type": "websocket.accept"})
        beating = asyncio.create_task(beat())
        await asyncio.sleep(0.1)
        worst = 0.0
        while (await receive())["type"] == "websocket.receive":
            heard += 1
        await asyncio.sleep(0.1)
        beating.cancel()
        ended.set()

    def pipelining():
        global worst
        line = socket.create_connection(("127.0.0.1", PORT), timeout=PATIENCE)
        asked = b"GET / HTTP/1.1\\r\\nhost: a\\r\\n\\r\\n"
        line.sendall(asked)
        time.sleep(0.3)
        worst = 0.0
        threading.Thread(target=swallow, args=(line,), daemon=True).start()
        try:
            line.sendall(asked * 20_000)
        except OSError:
            pass  # hung up on
        time.sleep(2)
        print(json.dumps({"worst": worst, "heard": heard}), flush=True)

    def client():
        line = socket.create_connection(("127.0.0.1", PORT), timeout=PATIENCE)
        key = base64.b64encode(bytes(16)).decode()
        line.sendall(
            (
                "GET / HTTP/1.1\\r\\nHost: localhost\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n"
                f"Sec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: {key}\\r\\n\\r\\n"
            ).encode()
        )
        line.recv(65536)
        time.sleep(0.5)
        threading.Thread(target=swallow, args=(line,), daemon=True).start()
        try:
            line.sendall(FRAME * FRAMES)
            line.sendall(b"\\x88\\x80" + bytes(4))
        except OSError:
            pass  # hung up on
        if not ended.wait(PATIENCE):
            raise RuntimeError("it never ended")
        print(json.dumps({"worst": worst, "heard": heard}), flush=True)

    def swallow(line):
        try:
            while line.recv(1 << 20):
                pass
        except OSError:
            pass

    def begin():
        try:
            CLIENT()
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(0)
"""
_SERVERS = {
    "daphne": """
    from agentsite import guarded_daphne
    guarded_daphne.GuardedServer(
        application,
        endpoints=["tcp:port=PORT:interface=127.0.0.1"],
        signal_handlers=False,
        ready_callable=threading.Thread(target=begin, daemon=True).start,
    ).run()
""",
    "uvicorn": """
    import uvicorn

    def soon():
        while True:
            try:
                socket.create_connection(("127.0.0.1", PORT), timeout=1).close()
                break
            except OSError:
                time.sleep(0.1)
        begin()

    threading.Thread(target=soon, daemon=True).start()
    uvicorn.run(
        application,
        host="127.0.0.1",
        port=PORT,
        lifespan="off",
        http="agentsite.guarded_uvicorn:GuardedHttp",
        ws="agentsite.guarded_uvicorn:GuardedSocket",
        ws_per_message_deflate=False,
        log_config=None,
    )
""",
}
_FRAMES = {"pings": b"\x89\x80" + bytes(4), "texts": b"\x81\x81" + bytes(4) + b"a"}


def _longest_stall(server: str, client: str, frame: bytes = b"") -> float:
    """Seconds of work between two beats of the server's loop; the best of several tries."""
    script = (_BEGINNING + _SERVERS[server]).replace("FRAMES", str(FRAMES))
    script = script.replace("FRAME", repr(frame)).replace("CLIENT", client)
    worst = []
    for _try in range(3):
        done = run_script(script.replace("PORT", str(free_port())), patience=4 * PATIENCE)
        assert done.stdout, done.stderr
        worst.append(float(json.loads(done.stdout)["worst"]))
        if worst[-1] <= MOST_SECONDS:
            break
    return min(worst)


@pytest.mark.parametrize("server", _SERVERS)
@pytest.mark.parametrize("kind", _FRAMES)
def test_frames_of_a_few_bytes_keep_nobody_else_waiting(server: str, kind: str) -> None:
    assert _longest_stall(server, "client", _FRAMES[kind]) <= MOST_SECONDS


@pytest.mark.parametrize("server", _SERVERS)
def test_requests_that_come_before_the_first_is_answered_keep_nobody_else_waiting(
    server: str,
) -> None:
    assert _longest_stall(server, "pipelining") <= MOST_SECONDS
