"""The form of a schedule. It shapes input; `drafts` judges it."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.formwords import OurForm
from accounts.models import Organisation, User
from agents.listing import listed_agents
from agents.models import Agent, Environment
from chat.forms import CHECKS_HELP, NamedChoice
from conversations.actions.outcomes import checks_as_text, checks_in
from conversations.defaults import default_agent, default_environment
from harness.content import Text, text_of
from harness.errors import Invalid
from harness.events import OutcomeCheck, UserDefineOutcome, UserMessage
from harness.grading import ITERATIONS
from reading.moments import moment_of
from spending.amounts import dollars_of, units_of

from .drafts import Draft, messages_of, outcome_of
from .mailaddresses import takes_mail
from .models import StandingOrder
from .phrases import read_phrase
from .times import read_cron

FIELD_OF = {
    "initial_events": "text",
    "schedule.expression": "cron",
    "schedule.timezone": "timezone",
    "agent": "agent",
    "limit": "budget",
    "rubric": "rubric",
    "x_checks": "checks",
}
"""Names of refusals that the form spells otherwise: of the part alone, or of what it is a part of."""
USUAL = ("name", "agent", "environment", "text", "when", "timezone", "budget", "mails_owner")
"""What a first schedule needs; the page folds the others away."""
TIMES = ("cron", "dates")
"""What words for a time become: shown where there are some."""


class ScheduleForm(OurForm):
    name = forms.CharField(label=_("Name"), required=False)
    agent = NamedChoice(
        label=_("Agent"),
        queryset=Agent.objects.none(),
        to_field_name="uid",
        help_text=_("Its current version and model are what runs stay with until you save again."),
    )
    environment = NamedChoice(
        label=_("Environment"), queryset=Environment.objects.none(), to_field_name="uid"
    )
    text = forms.CharField(
        label=_("What it is to do"), required=False, widget=forms.Textarea(attrs={"rows": 6})
    )
    rubric = forms.CharField(
        label=_("Criteria that its work is judged by"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_(
            "One a line, each with “- ” before it. Somebody else judges by them, and what is not met goes"
            " back to the agent. Empty: nothing is judged."
        ),
    )
    iterations = forms.IntegerField(
        label=_("Judged so many times at most"), required=False, initial=ITERATIONS
    )
    checks = forms.CharField(
        label=_("Commands that check it"),
        required=False,
        help_text=CHECKS_HELP,
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}),
    )
    when = forms.CharField(
        label=_("When, in words"),
        required=False,
        help_text=_(
            "“every weekday at 8:30”, “monthly on the 15th at 9”, “every 30 minutes”, “tomorrow at 9”."
            " It is shown as it was understood before anything is saved."
        ),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    cron = forms.CharField(
        label=_("As a cron expression"),
        required=False,
        help_text=_("Empty: no time of its own; it begins by hand, by a webhook or at dates."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    dates = forms.CharField(
        label=_("Single dates"),
        required=False,
        help_text=_("One a line, like 2026-12-24T18:00:00+01:00."),
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}),
    )
    timezone = forms.CharField(
        label=_("Time zone"),
        required=False,
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
        help_text=_("An IANA name such as Europe/Berlin."),
    )
    after = NamedChoice(
        label=_("Also when a run of this one has ended"),
        queryset=StandingOrder.objects.none(),
        to_field_name="uid",
        required=False,
        empty_label=_("none"),
    )
    after_outcome = forms.ChoiceField(
        label=_("But only"),
        choices=StandingOrder.After.choices,
        initial=StandingOrder.After.ANY,
    )
    missed = forms.ChoiceField(
        label=_("When the server was not there at that time"),
        choices=StandingOrder.Missed.choices,
        initial=StandingOrder.Missed.SKIP,
    )
    most_missed = forms.IntegerField(label=_("So many at most"), initial=1)
    overlap = forms.ChoiceField(
        label=_("When an earlier run is not done"),
        choices=StandingOrder.Overlap.choices,
        initial=StandingOrder.Overlap.SKIP,
    )
    jitter = forms.IntegerField(
        label=_("Begin up to so many seconds later"),
        initial=0,
        help_text=_("Spreads schedules that are due at the same time."),
    )
    budget = forms.DecimalField(
        label=_("Most US dollars a run"),
        required=False,
        max_digits=12,
        decimal_places=2,
        min_value=Decimal("0.01"),
    )
    failures_to_pause = forms.IntegerField(
        label=_("Pause after so many failed runs in a row"), initial=3, help_text=_("0: never.")
    )
    idle_to_pause = forms.IntegerField(
        label=_("Pause after so many runs in a row that said the same"),
        initial=0,
        help_text=_("0: never."),
    )
    works_queue = forms.BooleanField(
        label=_("Work a queue"),
        required=False,
        help_text=_(
            "Each run takes one item of its queue, and none begins while that is empty. Without a time of"
            " its own it begins when something comes in."
        ),
    )
    mail_from = forms.CharField(
        label=_("Mails that begin it"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}),
        help_text=_(
            "Whose mails begin a run: one a line, anna@example.org or @example.org. The page of the schedule"
            " then has an address for them."
        ),
    )
    mails_owner = forms.BooleanField(label=_("Mail me how each run ended"), required=False)
    readers = forms.ModelMultipleChoiceField(
        label=_("May read its runs, and are mailed how each ended"),
        queryset=User.objects.none(),
        to_field_name="uid",
        required=False,
    )
    result_files = forms.IntegerField(
        label=_("Keep the answers of the last so many runs as files"),
        initial=0,
        required=False,
        help_text=_("0: none."),
    )
    approvers = forms.ModelMultipleChoiceField(
        label=_("May decide beside you"),
        queryset=User.objects.none(),
        to_field_name="uid",
        required=False,
    )

    def __init__(
        self,
        *args: Any,
        user: User,
        organisation: Organisation,
        order: StandingOrder | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.order = order
        fields: Any = self.fields
        fields["agent"].queryset = listed_agents(user, organisation)
        places = Environment.objects.visible_to(user).usable_in(organisation)
        fields["environment"].queryset = places.on_offer()
        others = StandingOrder.objects.visible_to(user).filter(
            organisation=organisation, archived_at=None
        )
        fields["after"].queryset = others.exclude(pk=order.pk) if order else others
        members = User.objects.filter(
            memberships__organisation=organisation, is_active=True, kind=User.Kind.PERSON
        )
        others_here = members.exclude(pk=user.pk).order_by("username")
        fields["approvers"].queryset = fields["readers"].queryset = others_here
        if not (takes_mail() or (order is not None and order.mail_from)):
            del fields["mail_from"]

    @property
    def usual(self) -> list[forms.BoundField]:
        """What a first schedule needs, and the times that words became."""
        times = [name for name in TIMES if self[name].value()]
        return [self[name] for name in self.fields if name in (*USUAL, *times)]

    @property
    def rare(self) -> list[forms.BoundField]:
        """All others."""
        usual = {field.name for field in self.usual}
        return [self[name] for name in self.fields if name not in usual]

    @property
    def has_more(self) -> bool:
        """Whether one of the rare fields says something, or has to be corrected."""
        return any(
            field.errors
            or field.field.has_changed(
                field.field.initial, field.data if self.is_bound else field.value()
            )
            for field in self.rare
        )

    def understood(self, now: datetime) -> bool:
        """Whether words said when: then the cron expression or date that they mean stands in the form in
        their place, to be confirmed. Raises Invalid."""
        given = self.cleaned_data
        if not given["when"].strip():
            return False
        read_cron("0 0 * * *", given["timezone"] or "UTC")
        found = read_phrase(given["when"], zone=given["timezone"] or "UTC", now=now)
        posted: Any = self.data
        data = posted.copy()
        data["when"] = ""
        data["cron"] = given["cron"] = found.cron
        if found.date is not None:
            place = timezone.get_current_timezone()
            lines = [given["dates"].strip(), found.date.astimezone(place).isoformat()]
            data["dates"] = given["dates"] = "\n".join(line for line in lines if line)
        given["when"] = ""
        self.data = data
        return True

    def clean_dates(self) -> str:
        text: str = self.cleaned_data["dates"]
        for line in text.split()[:200]:
            if _moment(line) is None:
                raise forms.ValidationError(
                    _(
                        "“%(text)s” is no date with a time and an offset. Write it like"
                        " 2026-12-24T18:00:00+01:00."
                    )
                    % {"text": line[:60]}
                )
        return text

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        if given.get("checks", "").strip() and not given.get("rubric", "").strip():
            self.add_error("checks", _("Checks belong to criteria: write at least one above."))
        return given

    def _outcome(self) -> UserDefineOutcome | None:
        given = self.cleaned_data
        rubric = given["rubric"].replace("\r\n", "\n").strip()
        if not rubric:
            return None
        before = self.order
        own = before.outcome if before is not None and before.messages else None
        return UserDefineOutcome(
            outcome_id="",
            description=own["description"] if own else given["text"].replace("\r\n", "\n"),
            rubric=rubric,
            max_iterations=given["iterations"] or ITERATIONS,
            checks=_with_seconds(checks_in(given["checks"]), before),
        )

    def draft(self) -> Draft:
        given = self.cleaned_data
        kept: dict[str, Any] = {}
        said: tuple[UserMessage, ...] = (UserMessage(content=(Text(text=given["text"]),)),)
        if self.order is not None:
            before = self.order
            if before.messages and given["text"].replace("\r\n", "\n") == text_in(before):
                said = messages_of(before)  # pictures and several messages are left as they are
            kept = {
                "description": before.description,
                "files": tuple((uid, path) for uid, path in before.files),
                "vaults": tuple(before.vaults),
                "metadata": before.metadata,
            }
        outcome = self._outcome()
        has_own = self.order is not None and self.order.outcome and self.order.messages
        return Draft(
            name=given["name"],
            agent=given["agent"],
            environment=given["environment"],
            # What is to be done is the outcome's, unless it has words of its own.
            messages=said if outcome is None or has_own else (),
            outcome=outcome,
            budget=units_of(given["budget"]) if given["budget"] is not None else None,
            approvers=tuple(one.uid for one in given["approvers"]),
            cron=given["cron"].strip(),
            timezone=given["timezone"].strip() or "UTC",
            dates=tuple(at for line in given["dates"].split() if (at := _moment(line))),
            after=given["after"],
            after_outcome=given["after_outcome"],
            missed=given["missed"],
            most_missed=given["most_missed"],
            overlap=given["overlap"],
            jitter=given["jitter"],
            failures_to_pause=given["failures_to_pause"],
            idle_to_pause=given["idle_to_pause"],
            works_queue=given["works_queue"],
            mail_from=tuple(given.get("mail_from", "").split()),
            mails_owner=given["mails_owner"],
            readers=tuple(one.uid for one in given["readers"]),
            result_files=given["result_files"] or 0,
            **kept,
        )


def _checks_of(order: StandingOrder | None) -> tuple[OutcomeCheck, ...]:
    outcome = outcome_of(order) if order is not None else None
    return outcome.checks if outcome is not None else ()


def _with_seconds(
    checks: tuple[OutcomeCheck, ...], order: StandingOrder | None
) -> tuple[OutcomeCheck, ...]:
    """With the seconds that they had before, which the form does not show."""
    seconds = {(each.run, each.criterion): each.seconds for each in _checks_of(order)}
    return tuple(
        each.model_copy(update={"seconds": seconds.get((each.run, each.criterion), each.seconds)})
        for each in checks
    )


def text_in(order: StandingOrder) -> str:
    """The texts of its first messages, as the form shows and sends them; without any, what its outcome is."""
    texts = [text_of(said.content) for said in messages_of(order)]
    if not texts and order.outcome is not None:
        texts = [order.outcome["description"]]
    return "\n\n".join(texts).replace("\r\n", "\n").strip()


def initial_for(user: User, organisation: Organisation) -> dict[str, Any]:
    """Of a new one: what a new conversation of theirs would begin with."""
    given: dict[str, Any] = {"timezone": str(timezone.get_current_timezone())}
    with suppress(Invalid):  # then there is none to choose, either
        given["agent"] = default_agent(user, organisation).uid
        given["environment"] = default_environment(user, organisation).uid
    return given


def initial_of(order: StandingOrder) -> dict[str, Any]:
    return {
        "name": order.name,
        "agent": order.agent_version.agent.uid,
        "environment": order.environment.uid,
        "rubric": order.outcome["rubric"] if order.outcome else "",
        "checks": checks_as_text(_checks_of(order)),
        "iterations": order.outcome["max_iterations"] if order.outcome else ITERATIONS,
        "text": text_in(order),
        "cron": order.cron,
        "dates": "\n".join(order.dates),
        "timezone": order.timezone,
        "after": order.after.uid if order.after else None,
        "after_outcome": order.after_outcome,
        "missed": order.missed,
        "most_missed": order.most_missed,
        "overlap": order.overlap,
        "jitter": order.jitter,
        "budget": dollars_of(order.budget) if order.budget is not None else None,
        "failures_to_pause": order.failures_to_pause,
        "idle_to_pause": order.idle_to_pause,
        "works_queue": order.works_queue,
        "mail_from": "\n".join(order.mail_from),
        "mails_owner": order.mails_owner,
        "readers": list(order.readers.values_list("uid", flat=True)),
        "result_files": order.result_files,
        "approvers": list(order.approvers.values_list("uid", flat=True)),
    }


def _moment(text: str) -> datetime | None:
    found = moment_of(text)
    return found if found is not None and found.tzinfo is not None else None
