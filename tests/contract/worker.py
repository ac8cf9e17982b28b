"""A worker as anybody runs one: the SDK's own, unmodified, in a process of its own.

Run as a module with the server's address, the environment, a folder to work in and the number of
seconds after which an idle session is left; the key is in the environment of the process.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys

import anthropic
from anthropic.lib.environments import EnvironmentWorker


def main() -> None:
    address, environment, folder, max_idle = sys.argv[1:5]
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    client = anthropic.AsyncAnthropic(base_url=address, api_key="not-used-by-workers")
    worker = EnvironmentWorker(
        client,
        environment_id=environment,
        environment_key=os.environ["WORKER_KEY"],
        workdir=folder,
        max_idle=float(max_idle),
    )
    asyncio.run(worker.run())


if __name__ == "__main__":
    main()
