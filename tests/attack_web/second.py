"""The form of the server for many machines (`manage.py serve`, uvicorn), on the site's own tables."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from agentsite.local_services import free_port
from tests.attack_web.case import NotTried
from tests.journeys.site import ROOT, Site

PATIENCE = 60.0


class Second:
    def __init__(self, site: Site, directory: Path) -> None:
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self._process = subprocess.Popen(
            [sys.executable, "manage.py", "serve", "--port", str(self.port)],
            cwd=ROOT,
            env=site.environment,
            stdout=subprocess.DEVNULL,
            stderr=(directory / "second.txt").open("a", encoding="utf-8"),
        )
        end = time.monotonic() + PATIENCE
        while True:
            try:
                urllib.request.urlopen(f"{self.address}/healthz", timeout=5).close()
                return
            except OSError:
                if time.monotonic() > end or self._process.poll() is not None:
                    self.stop()
                    said = (directory / "second.txt").read_text(encoding="utf-8")
                    raise NotTried(f"uvicorn did not start: {said[-500:]}") from None
                time.sleep(0.1)

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
