"""Two who show the same secret at once: one is answered at most, and what came of it ends."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.test import Client as Browser

from accounts.models import ApiToken, Organisation, User
from jobs.connections import give_back
from tests.cast import ClientOf
from tests.mcpclients.flow import OAuthClient, confirmed, opens

pytestmark = pytest.mark.django_db(transaction=True)

AT_ONCE = 2


def test_of_copies_that_come_at_once_one_is_answered_and_all_ends(
    alice: User, acme: Organisation, client_of: ClientOf
):
    hers, notes = confirmed(client_of(alice)), OAuthClient.registered()
    together = Barrier(AT_ONCE)

    def show(secret: str, kind: str) -> Any:
        mine = OAuthClient(notes.client_id, browser=Browser(), verifier=notes.verifier)
        together.wait()
        try:
            answer = mine.token(secret) if kind == "code" else mine.renew(secret)
            return answer.status_code, answer.json()
        finally:
            give_back()

    def shown(secret: str, kind: str) -> None:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            answers = list(pool.map(show, [secret] * AT_ONCE, [kind] * AT_ONCE))
        assert sorted(status for status, _said in answers) == [200, *[400] * (AT_ONCE - 1)]
        given = next(said for status, said in answers if status == 200)
        assert not opens(given["access_token"])
        assert notes.renew(given["refresh_token"]).json()["error"] == "invalid_grant"

    shown(notes.code_of(hers, acme), "code")
    shown(notes.let_in(hers, acme)["refresh_token"], "refresh")
    assert not ApiToken.objects.filter(revoked_at=None).exists()
