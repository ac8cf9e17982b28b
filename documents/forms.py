"""The forms of documents. They shape input; the actions judge it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.formwords import OurForm

from .models import ADDRESS_LIMIT, DESCRIPTION_LIMIT, NAME_LIMIT


class CollectionForm(OurForm):
    name = forms.CharField(label=_("Name"), max_length=NAME_LIMIT)
    description = forms.CharField(
        label=_("What is in it"),
        required=False,
        max_length=DESCRIPTION_LIMIT,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=_("Agents read it when they choose where to look."),
    )
    shared = forms.BooleanField(label=_("All members of the organisation read it"), required=False)


class ManyFiles(forms.ClearableFileInput):
    allow_multiple_selected = True


class FilesField(forms.FileField):
    """A list of what was sent."""

    def clean(self, data: Any, initial: Any = None) -> list[Any]:
        every = data if isinstance(data, list | tuple) else [data]
        return [super(FilesField, self).clean(each, initial) for each in every or [None]]


class FilesForm(OurForm):
    uploads = FilesField(
        label=_("Files"),
        widget=ManyFiles,
        help_text=_(
            "PDF, Word, Excel, PowerPoint, HTML, Markdown, CSV, text and code. One with the name of a "
            "document that is there takes its place."
        ),
    )


class AddressForm(OurForm):
    address = forms.CharField(
        label=_("Address"),
        max_length=ADDRESS_LIMIT,
        widget=forms.URLInput,
        help_text=_("Of one page or file on the public internet; it is fetched once."),
    )
