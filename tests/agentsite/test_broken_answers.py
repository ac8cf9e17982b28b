"""What daphne sends when an application breaks off in the midst of its answer; later ones do not suffer."""

from __future__ import annotations

import json

from agentsite.local_services import free_port
from tests.agentsite.processes import run_script
from tests.patience import PATIENCE

BREAKING_OFF = """
    import http.client, json, os, sys, threading, traceback
    import django
    django.setup()
    from agentsite import guarded_daphne
    from tests.patience import PATIENCE

    async def application(scope, receive, send):
        await receive()
        if scope["path"].startswith("/midst"):
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"half", "more_body": True})
        if scope["path"].endswith("/raises"):
            raise ValueError("no more")

    def told(path):
        line = http.client.HTTPConnection("127.0.0.1", PORT, timeout=PATIENCE)
        line.request("GET", path)
        answer = line.getresponse()
        try:
            answer.read()
        except http.client.IncompleteRead as broken:
            return [answer.status, broken.partial.decode()]
        finally:
            line.close()
        return [answer.status, "whole"]

    def client():
        try:
            paths = ["/midst/raises", "/midst/returns", "/raises", "/returns"]
            print(json.dumps([told(path) for path in paths]), flush=True)
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
        ready_callable=threading.Thread(target=client, daemon=True).start,
    ).run()
"""


def test_half_an_answer_never_looks_like_a_whole_one_and_nobody_waits_for_the_rest():
    done = run_script(BREAKING_OFF.replace("PORT", str(free_port())), patience=4 * PATIENCE)
    assert done.stdout, done.stderr
    assert json.loads(done.stdout) == [
        [200, "half"],
        [200, "half"],
        [500, "whole"],
        [500, "whole"],
    ]
