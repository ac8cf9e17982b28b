"""`python -m tests.attack_web [--quick] [--subject NAME] [--case NAME] [--opened] [--verbose]`

Starts a site and the services around it, attacks it as strangers, neighbours, staff and machines, and
prints a line for each attack that got something; the last line is `cases: N, open: 0`. Ends with 1 if
anything was open or could not be tried. `--opened` attacks a site whose operator switched protections
off: then what they hold back must be open, which shows that the attacks see.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

import django

from tests.attack_web.identities import IdentityProvider
from tests.attack_web.inside import Inside
from tests.journeys.model_service import ModelService
from tests.journeys.site import Site

METRICS_TOKEN = "metrics-token-of-the-operator"


def settings_for(
    service: ModelService, provider: str, listed: int, inside: int, opened: bool
) -> dict[str, str]:
    plain = {
        "ANTHROPIC_API_KEY": "key-of-the-server-0451",
        "ANTHROPIC_BASE_URL": service.base_url,
        "AGENTSITE_API_WRITES_PER_MINUTE": "0",
        "AGENTSITE_API_READS_PER_MINUTE": "0",
        "AGENTSITE_MESSAGES_PER_MINUTE": "0",
        "AGENTSITE_STREAM_PING_SECONDS": "1",
        "AGENTSITE_EMAIL_URL": "consolemail://",
        "AGENTSITE_METRICS_TOKEN": METRICS_TOKEN,
        "AGENTSITE_PRIVATE_PROVIDER_HOSTS": f"127.0.0.1:{listed}",
        "AGENTSITE_WEBHOOK_ALLOW_HTTP": "true",
        "AGENTSITE_MCP_PRIVATE_HOSTS": f"127.0.0.1:{listed}",
        "AGENTSITE_MCP_REGISTRIES": f"http://127.0.0.1:{listed}",
        "AGENTSITE_MCP_SERVERS": "200",
        "AGENTSITE_WEBHOOK_PRIVATE_HOSTS": f"127.0.0.1:{listed}",
        "AGENTSITE_CONNECTIONS_PER_ADDRESS": "120",
        "AGENTSITE_FILE_BYTES": "3000000",
        "AGENTSITE_FILES_BYTES": "6000000",
        "AGENTSITE_HEAD_SECONDS": "3",
        "AGENTSITE_BODY_SECONDS": "3",
        "AGENTSITE_OIDC_SERVER_URL": provider,
        "AGENTSITE_OIDC_CLIENT_ID": "agentsite",
        "AGENTSITE_OIDC_CLIENT_SECRET": "secret-of-the-client",
    }
    if not opened:
        return plain
    return {
        **plain,
        "AGENTSITE_WEBHOOK_PRIVATE_HOSTS": ",".join(
            f"{host}:{port}"
            for host in ("127.0.0.0/8", "localhost", "[::1]")
            for port in (listed, inside)
        ),
        "AGENTSITE_ALLOWED_HOSTS": "*",
        "AGENTSITE_LOGIN_FAILURES": "1000",
        "AGENTSITE_ANONYMOUS_BODY_BYTES": "100000000",
        "AGENTSITE_CORS_ORIGINS": "https://evil.example",
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.attack_web")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--subject", action="append", default=[])
    parser.add_argument("--case", action="append", default=[])
    parser.add_argument("--opened", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    asked = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="agentsite-attacked-") as name,
        ModelService() as service,
        IdentityProvider() as provider,
        Inside() as inside,
        Inside() as listed,
    ):
        directory = Path(name)
        settings = settings_for(service, provider.url, listed.port, inside.port, asked.opened)
        with Site(directory, settings) as site:
            # The site's own, and nothing of whoever started this.
            os.environ.clear()
            os.environ.update(site.environment)
            django.setup()
            # Both need the apps.
            from tests.attack_web.suite import run  # noqa: PLC0415
            from tests.attack_web.world import World  # noqa: PLC0415

            return run(World(site, service, inside, listed, provider, directory), asked)


if __name__ == "__main__":
    sys.exit(main())
