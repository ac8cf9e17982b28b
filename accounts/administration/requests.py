"""What the admin's pages take from a request: who asks, and what an action's refusal means here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django import forms
from django.http import HttpRequest

from accounts.models import User
from harness.errors import Declined, Invalid


def actor_of(request: HttpRequest) -> User:
    user = request.user
    assert isinstance(user, User)  # noqa: S101 - the admin lets nobody else in
    return user


@contextmanager
def beside_its_field(form: forms.BaseForm) -> Iterator[None]:
    """Show the refusal of an action's own check beside the field it names, with its remedy."""
    try:
        yield
    except Declined as error:
        field = error.field if isinstance(error, Invalid) and error.field in form.fields else None
        form.add_error(field, error.words)
