"""Which backend runs a command: the first whose probe promises what the policy requires.

The backend “none” is considered only when the operator allowed it in so many words, and even then
last and only for a policy that requires nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from .contract import SandboxBackend
from .policy import Policy
from .refusals import Refusal, missing, refuse


async def choose(
    preferred: Sequence[SandboxBackend], policy: Policy, *, unconfined: SandboxBackend | None = None
) -> SandboxBackend:
    """The first of `preferred` that can hold `policy`.

    `unconfined` is the backend “none”, handed in only where a setting says so. Raises `Unavailable`
    with the reason of each backend.
    """
    refusals: list[Refusal] = []
    backends = [*preferred, unconfined] if unconfined is not None else preferred
    for backend in backends:
        refusal = missing(policy, await backend.probe())
        if refusal is None:
            return backend
        refusals.append(refusal)
    raise refuse(policy, refusals)
