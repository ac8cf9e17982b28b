"""Questions that an agent puts to a person, and the answers, as data: parsed, checked, put in words.

Who may answer, and that an answer counts once, is `conversations.actions.answers`; how the form looks,
the templates'.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from pydantic import BaseModel, ConfigDict, ValidationError

from harness.errors import Invalid, TooLarge
from harness.faults import place

TOOL = "ask_user"
MOST_QUESTIONS = 4
MOST_OPTIONS = 8
OWN_WORDS = 4_000
"""Characters of one answer in a person's own words."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Option(_Part):
    label: str
    description: str = ""


class Question(_Part):
    question: str
    header: str = ""
    """One or two words, for a heading."""
    options: tuple[Option, ...] = ()
    multi_select: bool = False
    free_text: bool = True

    @property
    def takes_text(self) -> bool:
        return self.free_text or not self.options


class Answer(_Part):
    """To one question; with neither part the person left it open."""

    chosen: tuple[str, ...] = ()
    """Labels of options."""
    text: str = ""

    @property
    def is_blank(self) -> bool:
        return not self.chosen and not self.text.strip()


class _Asked(_Part):
    questions: tuple[Question, ...]


def questions_of(given: Mapping[str, Any]) -> tuple[Question, ...]:
    """The questions of a call; none if its input is not one the tool's schema allows."""
    try:
        return _Asked.model_validate(given).questions
    except ValidationError:
        return ()


def checked(questions: Sequence[Question], answers: Sequence[Answer]) -> tuple[Answer, ...]:
    """One answer for each question, in order; those at the end that are missing are open.

    Raises Invalid, naming the answer, where one does not fit its question or none says anything.
    """
    if len(answers) > len(questions):
        raise Invalid(
            ngettext(
                "There is only %(count)d question.",
                "There are only %(count)d questions.",
                len(questions),
            )
            % {"count": len(questions)},
            field="answers",
            hint=_("Give one answer for each question, in their order."),
        )
    complete = (*answers, *(Answer() for _number in range(len(questions) - len(answers))))
    for number, (question, answer) in enumerate(zip(questions, complete, strict=True)):
        _check(question, answer, place("answers", number))
    if all(answer.is_blank for answer in complete):
        raise Invalid(
            _("No question has an answer."),
            field="answers",
            hint=_("Choose something, say it in your own words, or skip the questions."),
        )
    return tuple(
        Answer(
            chosen=tuple(_offered(question)[_plain(label)] for label in answer.chosen),
            text=answer.text.replace("\0", "").replace("\r\n", "\n").strip(),
        )
        for question, answer in zip(questions, complete, strict=True)
    )


def _plain(label: str) -> str:
    """A form may bring the spaces of a label back in another shape."""
    return " ".join(label.split())


def _offered(question: Question) -> dict[str, str]:
    return {_plain(option.label): option.label for option in question.options}


def _check(question: Question, answer: Answer, field: str) -> None:
    offered = _offered(question)
    for label in answer.chosen:
        if _plain(label) not in offered:
            raise Invalid(
                _("“%(label)s” is not among the options of “%(question)s”.")
                % {"label": label[:200], "question": question.question},
                field=field,
                hint=_("Choose one that is offered, or use your own words."),
            )
    if len(set(answer.chosen)) > 1 and not question.multi_select:
        raise Invalid(
            _("“%(question)s” takes one option.") % {"question": question.question},
            field=field,
            hint=_("Choose one, and add the rest in your own words."),
        )
    if answer.text.strip() and not question.takes_text:
        raise Invalid(
            _("“%(question)s” takes only its options.") % {"question": question.question},
            field=field,
            hint=_("Choose one, or send a message instead."),
        )
    if len(answer.text) > OWN_WORDS:
        raise TooLarge(
            _("An answer has at most %(limit)d characters.") % {"limit": OWN_WORDS},
            field=field,
            hint=_("Shorten it, or send the rest as a message."),
        )


def answer_text(questions: Sequence[Question], answers: Sequence[Answer]) -> str:
    """Questions and answers in words, for the model as well as for people."""
    return "\n\n".join(
        f"{question.question}\n→ {_said(answer)}"
        for question, answer in zip(questions, answers, strict=True)
    )


def _said(answer: Answer) -> str:
    if answer.is_blank:
        return "(left open)"
    chosen = ", ".join(dict.fromkeys(answer.chosen))
    own = f"“{answer.text}”" if answer.text else ""
    return "; ".join(part for part in (chosen, own) if part)
