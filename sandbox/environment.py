"""What a command finds in its environment: the sandbox's own values and a few allowed ones.

Nothing of the server's environment is there that the policy does not name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from .policy import Policy

PATH = "/usr/local/bin:/usr/bin:/bin"
VALUE_LIMIT = 4_096
"""Characters of a variable that is taken over."""


def environment(
    policy: Policy,
    *,
    home: str,
    tmp: str,
    proxy: str = "",
    source: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The whole environment of a command. `proxy` is the address of the way out, if there is one."""
    server = os.environ if source is None else source
    taken = {
        name: server[name]
        for name in policy.process.env_allow
        if name in server and len(server[name]) <= VALUE_LIMIT and "\0" not in server[name]
    }
    own = {"PATH": PATH, "HOME": home, "TMPDIR": tmp, "USER": "agent", "LOGNAME": "agent"}
    found = {"LANG": "C.UTF-8", "TERM": "dumb", **taken, **own, "SHELL": "/bin/bash"}
    if proxy:
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            found[name] = found[name.upper()] = proxy
        found["no_proxy"] = found["NO_PROXY"] = ""
    return found
