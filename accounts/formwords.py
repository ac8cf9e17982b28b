"""What forms say of what was typed: which field, which rule, and what to do, in our words.

Django finds the faults; by their codes they are told here, once for pages, sign-in and admin. What an
action refuses has words of its own and passes as it is.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.forms.utils import pretty_name
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import ngettext


class InOurWords(forms.BaseForm):
    """Before a form's other bases."""

    def add_error(self, field: str | None, error: Any) -> None:
        problem = error if isinstance(error, ValidationError) else ValidationError(error)
        if hasattr(problem, "error_dict"):
            by_field = {name: self._worded(name, each) for name, each in problem.error_dict.items()}
            super().add_error(None, ValidationError(by_field))
        else:
            super().add_error(field, ValidationError(self._worded(field, problem.error_list)))

    def _worded(self, name: str | None, errors: list[ValidationError]) -> list[ValidationError]:
        field = None if name in {None, NON_FIELD_ERRORS} else self.fields.get(str(name))
        return [self._in_words(str(name), field, each) for each in errors]

    def _in_words(
        self, name: str, field: forms.Field | None, error: ValidationError
    ) -> ValidationError:
        code, given = error.code or "", error.params or {}
        if field is None:
            problem = _("This is there already. Change one of the values.")
            return ValidationError(problem, code) if code == "unique_together" else error
        label = capfirst(str(field.label or pretty_name(name)))
        words = "" if _has_own_words(field, code) else rule_of(field, code, given)
        return ValidationError(words, code, {**given, "label": label}) if words else error


class OurForm(InOurWords, forms.Form):
    pass


class OurModelForm(InOurWords, forms.ModelForm):  # type: ignore[type-arg]
    pass


def _has_own_words(field: forms.Field, code: str) -> bool:
    """Whether the form gave this field words for it."""
    if code not in field.error_messages:
        return False
    usual: dict[str, Any] = {}
    for kind in reversed(type(field).__mro__):
        usual |= getattr(kind, "default_error_messages", {})
    return field.error_messages[code] is not usual.get(code)


def rule_of(field: forms.Field, code: str, given: dict[str, Any]) -> str:
    """The rule that was broken and the remedy, with `%(label)s` for the field and what the fault itself
    tells (`limit_value`, …); empty for a fault that is not Django's own."""
    match code:
        case "required" | "missing" | "incomplete":
            return _nothing(field)
        case "invalid" | "invalid_date" | "invalid_time" | "bad_format" | "overflow":
            return _form_of(field)
        case "invalid_choice" | "invalid_list" | "invalid_pk_value" | "list":
            return _("%(label)s: this is not among the choices. Choose from the list.")
        case "max_length":
            return ngettext(
                "%(label)s: longer than one character. Shorten it.",
                "%(label)s: longer than %(limit_value)d characters. Shorten it.",
                given["limit_value"],
            )
        case "min_length":
            return ngettext(
                "%(label)s: too short. Type at least one character.",
                "%(label)s: too short. Type at least %(limit_value)d characters.",
                given["limit_value"],
            )
        case "max_value":
            return _("%(label)s: too large. Give %(limit_value)s or less.")
        case "min_value":
            return _("%(label)s: too small. Give %(limit_value)s or more.")
        case "max_digits" | "max_whole_digits":
            return _("%(label)s: more than %(max)s digits. Give a smaller number.")
        case "max_decimal_places":
            return _("%(label)s: more than %(max)s decimals. Round it.")
        case "step_size":
            return _("%(label)s: between two steps. Give a multiple of %(limit_value)s.")
        case "null_characters_not_allowed":
            return _("%(label)s: a character in it has no meaning in text (NUL). Leave it out.")
        case "unique":
            return _("%(label)s: taken already. Choose another one.")
        case "password_too_short":
            return _("%(label)s: too short. Use at least %(min_length)d characters.")
        case "password_too_common":
            return _("%(label)s: too easy to guess, as many people use it. Choose another one.")
        case "password_entirely_numeric":
            return _("%(label)s: digits alone. Add letters.")
        case "password_too_similar":
            return _("%(label)s: too much like your %(verbose_name)s. Choose another one.")
        case "empty":
            return _("%(label)s: the file is empty. Choose another one.")
    return ""


def _nothing(field: forms.Field) -> str:
    match field:
        case forms.BooleanField():
            return _("%(label)s: needed to go on. Tick it.")
        case forms.ChoiceField() | forms.ModelChoiceField():
            return _("%(label)s: nothing is chosen. Choose from the list.")
        case forms.FileField():
            return _("%(label)s: no file is chosen. Choose one.")
    return _("%(label)s: empty. Type something here.")


def _form_of(field: forms.Field) -> str:
    match field:
        case forms.DecimalField() | forms.FloatField():
            return _("%(label)s: not a number. Type digits, with a point before decimals.")
        case forms.IntegerField():
            return _("%(label)s: not a whole number. Type digits alone.")
        case forms.EmailField():
            return _("%(label)s: no e-mail address. Type one such as name@example.org.")
        case forms.URLField():
            return _("%(label)s: no web address. Type one such as https://example.org.")
        case forms.JSONField():
            return _("%(label)s: not JSON. Put text and names in double quotes.")
        case forms.DateField():
            return _("%(label)s: no date. Type it as 2026-01-31.")
        case forms.DateTimeField() | forms.SplitDateTimeField() | forms.TimeField():
            return _("%(label)s: no date and time. Type them as 2026-01-31 and 09:30.")
        case forms.CharField():
            return _(
                "%(label)s: something in it is not allowed here. Use letters, digits, “.”, “+”, “-” and"
                " “_” alone."
            )
    return _("%(label)s: not in the form that is needed. Correct it, or put back what stood here.")
