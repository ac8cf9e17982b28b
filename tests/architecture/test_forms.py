"""Every form says in our words what is wrong: which field, which rule, what to do.

The forms are found where Django has them: classes of ours, those of the admin, and what stands behind the
addresses of signing in; so a new one cannot be forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django import forms
from django.contrib import admin
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.test import RequestFactory
from django.urls import resolve
from django.utils.datastructures import MultiValueDict

from accounts.formwords import InOurWords
from tests.architecture.routes import page_routes
from tests.architecture.sources import PACKAGES
from tests.architecture.test_every_door_is_guarded import PROGRAMS, values_for
from tests.phrases import phrase_in

NOT_OFFERED = ("login_code", "phone", "webauthn", "2fa/trust")
"""Addresses of allauth's that lead nowhere here: what they are about is switched off."""
MISTAKES = ("", "zzzz", "\0x", "x" * 5_000, "-1000000000", "9" * 18, "1.123456789012", "1e400")


def subclasses(kind: type[Any]) -> Iterator[type[Any]]:
    for one in kind.__subclasses__():
        yield one
        yield from subclasses(one)


def of_ours() -> set[type[Any]]:
    page_routes()  # imports every view
    return {
        form for form in subclasses(forms.BaseForm) if form.__module__.partition(".")[0] in PACKAGES
    }


def of_the_admin(staff: Any) -> set[type[Any]]:
    request = RequestFactory().get("/admin/")
    request.user = staff
    found = set()
    for model, page in admin.site._registry.items():
        if page.has_add_permission(request):
            found.add(page.get_form(request, None, change=False))
        if page.has_change_permission(request):
            found.add(page.get_form(request, model(), change=True))
            found.add(getattr(page, "change_password_form", page.form))
    return found


def of_signing_in(world: Any) -> set[type[Any]]:
    found = set()
    for route in page_routes():
        if route.pattern.startswith("accounts/") and not any(s in str(route) for s in NOT_OFFERED):
            match: Any = resolve(route.address(values_for(route, world)))
            view = getattr(match.func, "view_class", None)
            if view is not None and getattr(view, "form_class", None) is not None:
                made = view()
                made.request = RequestFactory().get("/")
                found.add(made.get_form_class())
    return found


@pytest.fixture
def every_form(staff, world) -> set[type[Any]]:
    found = of_ours() | of_the_admin(staff) | of_signing_in(world)
    return {form for form in found if getattr(form, "base_fields", None)}


@pytest.mark.django_db
def test_every_form_tells_its_faults_in_one_place(every_form):
    others = {form for form in every_form if not issubclass(form, InOurWords)}

    assert len(every_form) > 40
    assert not others, "derive them from accounts.formwords"


@pytest.mark.django_db
def test_no_form_says_what_django_would(every_form):
    complaints, seen = [], 0
    for form in every_form:
        for name, field in form.base_fields.items():
            probe = type("Probe", (InOurWords, forms.Form), {name: field})
            for mistake in MISTAKES:
                sent = MultiValueDict({key: [mistake] for key in (name, f"{name}_0", f"{name}_1")})
                files = MultiValueDict({name: [SimpleUploadedFile("x", b"")]})
                errors = probe(sent, files if mistake else None).errors.get(name, [])
                for told in map(str, errors):
                    seen += 1
                    if phrase_in(told) or ". " not in told or "%(" in told:
                        complaints.append(f"{form.__name__}.{name} {mistake[:20]!r}: {told}")
    assert seen > 200
    assert not complaints, "\n".join(complaints[:40])


@pytest.mark.django_db
def test_no_page_says_what_django_would(client_of, staff, world):
    """As it is sent by a browser that fills in nothing."""
    client = client_of(staff)
    said = []
    for route in page_routes():
        if route.pattern.startswith((*PROGRAMS, "api/")):
            continue
        mark = transaction.savepoint()
        answer = client.post(route.address(values_for(route, world)))
        transaction.savepoint_rollback(mark)
        phrase = phrase_in(answer.content.decode()) if not answer.streaming else ""
        if phrase:
            said.append(f"{route}: {phrase}")
    assert not said, "\n".join(said)
