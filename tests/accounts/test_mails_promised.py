"""Pages promise a mail only where one leaves the server; elsewhere they say who has the link."""

from __future__ import annotations

import pytest
from django.template import Context, Template
from django.test import Client
from django.utils import timezone
from django.utils.formats import date_format

from accounts.models import User
from tests.cast import PASSWORD

NO_MAIL = "This server sends no mail"


@pytest.mark.parametrize("path", ["/accounts/password/reset/", "/accounts/password/reset/done/"])
def test_a_forgotten_password_gets_a_mail_only_where_mails_are_sent(
    db: None, client: Client, settings, path: str
):
    settings.AGENTSITE_EMAIL_CONFIGURED = False
    assert NO_MAIL in client.get(path).content.decode()
    settings.AGENTSITE_EMAIL_CONFIGURED = True
    assert NO_MAIL not in client.get(path).content.decode()


def test_who_confirms_an_address_without_mails_is_told_where_the_link_is(
    alice: User, client: Client, settings
):
    settings.AGENTSITE_EMAIL_CONFIGURED = False
    client.force_login(alice)
    client.post("/accounts/reauthenticate/", {"password": PASSWORD})
    given = {"action_add": "", "email": "another@example.org"}
    page = client.post("/accounts/email/", given, follow=True).content.decode()
    assert NO_MAIL in page
    assert "was sent to" not in page


def test_times_end_no_sentence_with_two_points():
    moment = timezone.now().replace(hour=16, minute=5)
    said = Template('{{ at|date:"DATETIME_FORMAT" }}.').render(Context({"at": moment}))
    assert said.endswith(":05.")
    assert date_format(moment, "TIME_FORMAT") == "16:05"
