"""The forms a journey is made in: on a desk or a phone, in light or dark. One each, unless `JOURNEYS=all`.

Which page is accessible and fits where is tried for every page in `test_every_page.py`, in each form;
a journey proves the way, which is the same in all of them.
"""

from __future__ import annotations

import os
from typing import Literal

import pytest

Form = Literal["light", "dark", "phone"]

FORMS: dict[Form, dict[str, bool]] = {"light": {}, "dark": {"dark": True}, "phone": {"phone": True}}

IN_ALL = os.environ.get("JOURNEYS") == "all"


def in_form(usual: Form, *others: Form) -> pytest.MarkDecorator:
    """Gives the test its `kind`, arguments of `visit`."""
    names = (usual, *others) if IN_ALL else (usual,)
    return pytest.mark.parametrize("kind", [FORMS[name] for name in names], ids=names)


def on_screen(*, phone: bool) -> pytest.MarkDecorator:
    """Gives the test its `phone`: whether it is one."""
    given = [phone, not phone] if IN_ALL else [phone]
    return pytest.mark.parametrize(
        "phone", given, ids=["phone" if each else "desk" for each in given]
    )
