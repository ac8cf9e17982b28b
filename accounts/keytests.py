"""A provider key is tried before it is stored: one request, and only where its scope may lead.

What is asked says `providers.probing`; keys are stored by `accounts.actions.provider_keys`.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from asgiref.sync import async_to_sync
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_variables

from accounts.models import Scope
from accounts.provider_connections import JudgedConnections
from harness.errors import AddressRefused, Busy
from jobs.turnstile import Turnstile
from net.addresses import NEVER, Address, meanings, sort_of
from providers.probing import Outcome, probe

if TYPE_CHECKING:
    from net.lookups import Judge

SECONDS = 8.0
"""For the whole of it; a person waits at the form."""
AT_ONCE = 4
"""In this process, and each person one. Whoever finds no place stores a key that was not tried."""
_places = Turnstile(AT_ONCE)


@dataclass(frozen=True, slots=True)
class KeyTest:
    outcome: Outcome
    words: str

    @property
    def failed(self) -> bool:
        """Whether whoever stores the key should be asked first."""
        return self.outcome in {Outcome.REFUSED, Outcome.UNREACHED}


@sensitive_variables("key")
def try_key(*, scope: Scope, provider: str, key: str, base_url: str, who: Hashable) -> KeyTest:
    """Ask the service with this key, for the person whose key `who` is. The words are ours, whatever was
    answered, within `SECONDS`."""
    try:
        with _places.place(who):
            outcome = async_to_sync(_ask)(scope, provider, key, base_url)
    except Busy:
        return KeyTest(
            Outcome.UNKNOWN,
            _("It was not tested: too many keys are tested at the moment."),
        )
    except AddressRefused as refusal:
        return KeyTest(Outcome.UNREACHED, refusal.words)
    return KeyTest(outcome, _words(outcome))


@sensitive_variables("key")
async def _ask(scope: Scope, provider: str, key: str, base_url: str) -> Outcome:
    import httpx2  # noqa: PLC0415 - heavy, imported on first use

    from net.guarded import guarded_client  # noqa: PLC0415 - the same

    judge: Judge = _judge_operators if scope is Scope.DEPLOYMENT else JudgedConnections().judge
    async with guarded_client(judge, timeout=httpx2.Timeout(SECONDS), seconds=SECONDS) as client:
        return await probe(provider, key, base_url, client=client, seconds=SECONDS)


def _judge_operators(host: str, address: Address, port: int) -> None:
    """Operators may name what stands inside, but no place that hands out a machine's credentials."""
    if any(sort_of(each) in NEVER for each in meanings(address)):
        raise AddressRefused(
            _("The base URL of the provider key leads to an address that is not allowed."),
            hint=_("Check the base URL."),
        )


def _words(outcome: Outcome) -> str:
    match outcome:
        case Outcome.WORKS:
            return _("It was tested and works.")
        case Outcome.REFUSED:
            return _("The service refuses this key.")
        case Outcome.UNREACHED:
            return _("The service could not be reached, or is failing.")
    return _("Something answers there, but does not tell whether the key is right.")
