"""What daphne keeps of a socket that its client does not read; an application that sends all it has."""

from __future__ import annotations

import json

from agentsite.local_services import free_port
from tests.agentsite.processes import run_script
from tests.patience import PATIENCE

PIECES = 400
PINGS = 2_000
UNREAD = """
    import base64, json, os, socket, sys, threading, time, traceback
    import django
    django.setup()
    from agentsite import guarded_daphne
    from tests.patience import PATIENCE, until

    PIECE = "x" * 65536
    guarded_daphne.UNREAD_SECONDS = 1.0
    taken, gone = {"/late": 0, "/never": 0}, threading.Event()

    async def application(scope, receive, send):
        await receive()
        await send({"type": "websocket.accept"})
        for _ in range(PIECES):
            await send({"type": "websocket.send", "text": PIECE})
            taken[scope["path"]] += 1
        if scope["path"] == "/never":
            await receive()
            gone.set()
        while True:
            await receive()

    def shaken_hands(path):
        line = socket.socket()
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        line.connect(("127.0.0.1", PORT))
        key = base64.b64encode(bytes(16)).decode()
        line.sendall(
            (
                f"GET {path} HTTP/1.1\\r\\nHost: localhost\\r\\n"
                "Upgrade: websocket\\r\\nConnection: Upgrade\\r\\n"
                f"Sec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: {key}\\r\\n\\r\\n"
            ).encode()
        )
        return line

    def client():
        never = shaken_hands("/never")
        said = {"hung up on": gone.wait(PATIENCE), "got": 0}
        guarded_daphne.UNREAD_SECONDS = 600.0
        late = shaken_hands("/late")
        until(lambda: taken["/late"])
        time.sleep(1)
        said["taken"] = taken["/late"]
        late.sendall((b"\\x89\\xfd" + bytes(4) + bytes(125)) * PINGS)
        time.sleep(0.5)
        late.settimeout(PATIENCE)
        while said["got"] < FRAMES and (piece := late.recv(1 << 20)):
            said["got"] += len(piece)
        late.settimeout(0.5)
        try:
            while piece := late.recv(1 << 20):
                said["got"] += len(piece)
        except TimeoutError:
            pass
        until(lambda: taken["/late"] == PIECES)
        print(json.dumps(said), flush=True)

    def ended():
        try:
            client()
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(0)

    endpoint = f"tcp:port={PORT}:interface=127.0.0.1"
    guarded_daphne.GuardedServer(
        application,
        endpoints=[endpoint],
        signal_handlers=False,
        ready_callable=threading.Thread(target=ended, daemon=True).start,
    ).run()
"""


def test_what_nobody_reads_of_a_socket_is_not_taken_from_its_application():
    """Nor is a pong made for it; whoever reads late gets all, and whoever never does is hung up on."""
    script = UNREAD.replace("PORT", str(free_port())).replace("PIECES", str(PIECES))
    frames = PIECES * (65536 + 10)
    script = script.replace("PINGS", str(PINGS)).replace("FRAMES", str(frames))
    done = run_script(script, patience=4 * PATIENCE)
    assert done.stdout, done.stderr
    said = json.loads(done.stdout)
    assert 0 < said["taken"] < PIECES // 2
    assert frames <= said["got"] < frames + PINGS * 127 // 2
    assert said["hung up on"]
