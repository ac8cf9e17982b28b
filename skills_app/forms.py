"""The forms of the library's pages. They shape input; the actions judge it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.formwords import OurForm

from .models import Channel, SkillSource

ORGANISATION, SERVER = "organisation", "server"

TEMPLATE = """---
name: my-skill
description: What it does, and when an agent should read it.
---

# What to do

1.
"""


class ManyFiles(forms.ClearableFileInput):
    allow_multiple_selected = True


class FilesField(forms.FileField):
    """A list of what was sent."""

    def clean(self, data: Any, initial: Any = None) -> list[Any]:
        return list(data or [])


class SkillForm(OurForm):
    """What a version is made of: SKILL.md as it is typed, with further files; or a whole folder, packed."""

    text = forms.CharField(
        label="SKILL.md",
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 20, "spellcheck": "true", "class": "code"}),
        help_text=_(
            "The head says what the skill is called and when to read it; agents read the rest."
        ),
    )
    added = FilesField(
        label=_("Add files"),
        required=False,
        widget=ManyFiles,
        help_text=_("One with the name of a file that is there takes its place."),
    )
    place = forms.CharField(
        label=_("Folder for these files"),
        required=False,
        max_length=500,
        help_text=_("For example scripts or references; empty: beside SKILL.md."),
    )
    packed = forms.FileField(
        label=_("Or the whole folder as a ZIP or tar file"),
        required=False,
        allow_empty_file=True,
        widget=forms.FileInput(attrs={"accept": ".zip,.skill,.tar,.gz,.tgz"}),
        help_text=_("It takes the place of everything above."),
    )
    note = forms.CharField(label=_("What is new"), required=False, max_length=500)

    def __init__(self, *args: Any, paths: tuple[str, ...] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if paths:
            self.fields["removed"] = forms.MultipleChoiceField(
                label=_("Take files away"),
                required=False,
                choices=[(path, path) for path in paths],
                widget=forms.CheckboxSelectMultiple,
            )
        self.order_fields(["scope", "text", "removed", "added", "place", "packed", "note"])


class NewSkillForm(SkillForm):
    scope = forms.ChoiceField(label=_("Who it is for"))

    def __init__(self, *args: Any, scopes: list[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field: Any = self.fields["scope"]
        field.choices = scopes


class DecisionForm(OurForm):
    channel = forms.ChoiceField(
        label=_("Offer it as"),
        choices=[
            (Channel.STABLE, _("stable: agents that name the skill get it in new conversations")),
            (Channel.CANARY, _("canary: only agents that ask for the canary get it")),
        ],
        required=False,
    )
    reason = forms.CharField(label=_("Reason"), required=False, max_length=500)
    expected_digest = forms.CharField(required=False, widget=forms.HiddenInput)


class ReasonForm(OurForm):
    reason = forms.CharField(label=_("Why"), required=False, max_length=500)


class DeprecationForm(OurForm):
    replacement = forms.CharField(
        label=_("Use in its place"),
        required=False,
        max_length=200,
        help_text=_("A skill or a version."),
    )
    removal_on = forms.DateField(
        label=_("Refused from"),
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}),
        help_text=_("Empty: it is only warned of."),
    )


class SourceForm(OurForm):
    scope = forms.ChoiceField(label=_("Who it is for"))
    kind = forms.ChoiceField(label=_("What it is"), choices=SkillSource.Kind.choices)
    address = forms.CharField(
        label=_("Address"),
        max_length=2_000,
        help_text=_(
            "Of a server, an index, a repository, a skill’s page or an archive, beginning with https://; "
            "or a folder."
        ),
    )
    key = forms.CharField(
        label=_("Key"),
        required=False,
        max_length=64,
        help_text=_("Of another Agentsite: whoever runs it prints it by “agent skills key”."),
    )
    commit = forms.CharField(
        label=_("Commit or digest"),
        required=False,
        max_length=80,
        help_text=_(
            "Of a repository all 40 digits, of a bundle the SHA-256 of its archive: so that it is the same "
            "tomorrow."
        ),
    )

    def __init__(
        self, *args: Any, scopes: list[tuple[str, str]], folders: bool, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        scope: Any = self.fields["scope"]
        scope.choices = scopes
        kind: Any = self.fields["kind"]
        if not folders:
            kind.choices = [
                each for each in SkillSource.Kind.choices if each[0] != SkillSource.Kind.FOLDER
            ]


class CommitForm(OurForm):
    commit = forms.CharField(label=_("Another commit or digest"), max_length=80)
