"""The form of a hook. It shapes input; the action judges it."""

from __future__ import annotations

from django import forms
from django.utils.functional import Promise
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from accounts.formwords import OurForm

from .models import Hook
from .points import DEFAULT, POINTS, Point


def _named(point: Point) -> Promise:
    return format_lazy("{}: {}", point.name, point.label)


class HookForm(OurForm):
    name = forms.CharField(label=_("Name"), required=False)
    kind = forms.ChoiceField(label=_("What is asked"), choices=Hook.Kind.choices)
    target = forms.CharField(
        label=_("Name, address or command"),
        required=False,
        help_text=_(
            "Of an installed hook its name, of a signed request the address, of a command its line, which is "
            "run in the sandbox of the conversation."
        ),
    )
    points = forms.MultipleChoiceField(
        label=_("When"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        initial=[*DEFAULT],
        choices=[
            (_("Asked, and waited for"), [(p.name, _named(p)) for p in POINTS.values() if p.asks]),
            (_("Told afterwards"), [(p.name, _named(p)) for p in POINTS.values() if not p.asks]),
        ],
    )
    tool = forms.CharField(
        label=_("Tools"),
        required=False,
        initial="*",
        help_text=_(
            "Where it is about calls: a name, or a pattern in which * stands for anything, such as "
            "mcp__mail__*."
        ),
    )
    position = forms.IntegerField(
        label=_("Order"), initial=10, help_text=_("Hooks are asked from the lowest number on.")
    )
    deadline = forms.FloatField(label=_("Deadline in seconds"), initial=5)
    on_failure = forms.ChoiceField(
        label=_("When it fails or is late"),
        choices=Hook.OnFailure.choices,
        initial=Hook.OnFailure.REFUSE,
    )
    trusted = forms.BooleanField(
        label=_("Words that a signed request adds count as ours"),
        required=False,
        help_text=_(
            "Otherwise they are taken for others', and what follows from them is asked about."
        ),
    )
    enabled = forms.BooleanField(label=_("In use"), required=False, initial=True)
