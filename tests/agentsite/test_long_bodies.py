"""A long body is handed on piece by piece: others have their turns meanwhile, and half of one is no whole."""

from __future__ import annotations

import json

from agentsite.local_services import free_port
from tests.agentsite.processes import run_script
from tests.patience import PATIENCE

SENDING = """
    import asyncio, hashlib, http.client, json, os, socket, sys, threading, traceback
    import django
    django.setup()
    from django.conf import settings
    from agentsite import guarded_daphne
    from tests.patience import PATIENCE

    settings.AGENTSITE_ANONYMOUS_BODY_BYTES = 1 << 30
    BODY = bytes(range(256)) * 4096 * 8 + b"end"
    told = {}
    given_up = threading.Event()

    async def turns(counted):
        while True:
            counted[0] += 1
            await asyncio.sleep(0)

    async def application(scope, receive, send):
        counted, pieces, digest = [0], [], hashlib.sha256()
        others = asyncio.ensure_future(turns(counted))
        while True:
            message = await receive()
            if message["type"] != "http.request":
                break
            pieces.append(len(message["body"]))
            digest.update(message["body"])
            if scope["path"] == "/left" and len(pieces) == 1:
                told["open"].close()
                while not told["request"]._disconnected:
                    await asyncio.sleep(0.01)
            if not message["more_body"]:
                break
        others.cancel()
        told[scope["path"]] = {
            "last": message["type"], "pieces": len(pieces), "longest": max(pieces),
            "bytes": sum(pieces), "turns": counted[0], "digest": digest.hexdigest(),
        }
        if scope["path"] == "/left":
            given_up.set()
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"thanks"})
        told[scope["path"]]["behind"] = (await receive())["type"]

    class Watched(guarded_daphne.GuardedServer):
        def create_application(self, protocol, scope):
            told["request"] = protocol
            return super().create_application(protocol, scope)

    def sent(path, body):
        line = http.client.HTTPConnection("127.0.0.1", PORT, timeout=PATIENCE)
        line.request("POST", path, body)
        answer = line.getresponse().read().decode()
        line.close()
        assert answer == "thanks", answer

    def client():
        try:
            for path, body in [("/long", BODY), ("/short", b"x"), ("/none", b""), ("/piece", BODY[:65536])]:
                sent(path, body)
            told["open"] = socket.create_connection(("127.0.0.1", PORT), timeout=PATIENCE)
            head = f"POST /left HTTP/1.1\\r\\nHost: a\\r\\nContent-Length: {len(BODY)}\\r\\n\\r\\n"
            told["open"].sendall(head.encode() + BODY)
            assert given_up.wait(PATIENCE)
            told.pop("open"), told.pop("request")
            told["length"], told["digest"] = len(BODY), hashlib.sha256(BODY).hexdigest()
            print(json.dumps(told), flush=True)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(0)

    Watched(
        application,
        endpoints=[f"tcp:port={PORT}:interface=127.0.0.1"],
        signal_handlers=False,
        ready_callable=threading.Thread(target=client, daemon=True).start,
    ).run()
"""


def test_others_have_their_turns_while_a_long_body_is_handed_on():
    done = run_script(SENDING.replace("PORT", str(free_port())), patience=4 * PATIENCE)
    assert done.stdout, done.stderr
    told = json.loads(done.stdout)
    long = told["/long"]
    assert (long["bytes"], long["digest"]) == (told["length"], told["digest"])
    assert long["longest"] <= 64 * 1024
    assert long["turns"] >= long["pieces"] - 1
    assert (long["last"], long["behind"]) == ("http.request", "http.disconnect")
    for path, length in (("/short", 1), ("/none", 0), ("/piece", 64 * 1024)):
        assert (told[path]["pieces"], told[path]["bytes"]) == (1, length)
    left = told["/left"]
    assert left["last"] == "http.disconnect"
    assert left["bytes"] < told["length"]
