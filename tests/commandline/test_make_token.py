"""`manage.py make_token`: for whom, for what and until when, its secret alone on standard output."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from accounts.api.authentication import caller_with
from accounts.models import ApiToken


def make_token(*arguments: str) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("make_token", *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


@pytest.mark.django_db
def test_a_token_is_made_and_its_secret_stands_alone(alice, acme):
    secret, about = make_token(
        "CI", "--user", "alice", "--scope", "conversations:read", "--days", "7"
    )
    assert secret.endswith("\n")
    caller = caller_with(secret.strip())
    assert caller is not None
    assert (caller.user, caller.organisation, caller.token.name) == (alice, acme, "CI")
    assert caller.token.scopes == ["conversations:read"]
    assert caller.token.expiry is not None
    assert caller.token.expiry - timezone.now() <= timedelta(days=7)
    assert secret.strip() not in about
    assert "conversations:read" in about


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["CI", "--user", "alice"], "needs a scope"),
        (["CI", "--user", "alice", "--scope", "everything"], "invalid choice"),
        (["CI", "--user", "nobody", "--scope", "conversations:read"], "nobody"),
        (["", "--user", "alice", "--scope", "conversations:read"], "name"),
        (["CI", "--user", "alice", "--scope", "conversations:read", "--days", "0"], "--days"),
        (
            [
                "CI",
                "--user",
                "alice",
                "--scope",
                "conversations:read",
                "--organisation",
                "Elsewhere",
            ],
            "no such organisation",
        ),
    ],
)
def test_what_cannot_be_made_is_refused_in_words(alice, acme, elsewhere, arguments, words):
    with pytest.raises(CommandError, match=words):
        make_token(*arguments)
    assert not ApiToken.objects.exists()


@pytest.mark.django_db
def test_the_command_gives_no_more_than_the_person_may_make_herself(alice, bob, acme):
    with pytest.raises(CommandError, match="administration"):
        make_token("CI", "--user", "bob", "--organisation", "Acme", "--scope", "admin")
    assert not ApiToken.objects.exists()
