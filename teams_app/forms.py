"""The forms of the boards' pages. They shape input; the actions judge it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext as _now
from django.utils.translation import gettext_lazy as _

from accounts.formwords import OurForm
from harness.errors import Invalid
from reading.digits import number_of

from .boards import Standing
from .listing import people_at
from .models import Board, Task
from .owners import NOBODY, Owner

AGENT = "agent"
"""The value of the choice that is the agent of the board's own conversation."""
KEPT = "kept"
"""The value of the choice that leaves the task with the agent that has it."""


class TaskForm(OurForm):
    # What is too long is refused by the action, which names the rule.
    subject = forms.CharField(label=_("What is to be done"), required=False)
    description = forms.CharField(
        label=_("Description"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text=_("All that whoever does it has to know."),
    )
    owner = forms.ChoiceField(label=_("Who does it"), required=False)
    blocked_by = forms.CharField(
        label=_("Waits for"),
        required=False,
        help_text=_("Numbers of tasks that are to be finished before, such as “#1, #4”."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    def __init__(
        self, *args: Any, board: Board, standing: Standing | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._people = {user.uid: user for user in people_at(board)}
        self._board, self._task = board, standing.task if standing else None
        owner: Any = self.fields["owner"]
        owner.choices = [("", _("nobody yet")), *self._choices()]

    def owner_value(self) -> Owner | None:
        """None: it stays."""
        chosen = self.cleaned_data["owner"]
        if chosen == KEPT:
            return None
        if chosen == AGENT:
            return Owner(conversation=self._board.conversation)
        return Owner(user=self._people[chosen]) if chosen else NOBODY

    def numbers(self) -> list[int]:
        """Raises Invalid for what is no number of a task."""
        words = self.cleaned_data["blocked_by"].replace(",", " ").split()
        found = []
        for word in words[:100]:
            number = number_of(word.removeprefix("#"), most=999_999_999)
            if number is None:
                raise Invalid(
                    _now("“%(word)s” is no number of a task.") % {"word": word[:20]},
                    field="blocked_by",
                    hint=_now("Write numbers, with commas between them."),
                )
            found.append(number)
        return found

    def _choices(self) -> list[tuple[str, Any]]:
        choices: list[tuple[str, Any]] = []
        task, own = self._task, self._board.conversation
        if own is not None:
            choices.append((AGENT, _("the agent of this conversation")))
        if task is not None and task.owner_conversation_id not in {
            None,
            self._board.conversation_id,
        }:
            choices.append((KEPT, task.owner_name))
        choices += [(uid, user.username) for uid, user in self._people.items()]
        owner = task.owner_user if task is not None else None
        if owner is not None and owner.uid not in self._people:
            # She may have left; that she has it is shown all the same.
            choices.append((KEPT, owner.username))
        return choices


class ChangedTaskForm(TaskForm):
    active_form = forms.CharField(label=_("While it is being done"), required=False)
    status = forms.ChoiceField(label=_("Status"), choices=Task.Status.choices)

    field_order = ["subject", "active_form", "description", "status", "owner", "blocked_by"]

    @staticmethod
    def values_of(standing: Standing, board: Board) -> dict[str, Any]:
        task = standing.task
        owner = ""
        if task.owner_user is not None:
            owner = task.owner_user.uid if task.owner_user in people_at(board) else KEPT
        elif task.owner_conversation_id is not None:
            owner = AGENT if task.owner_conversation_id == board.conversation_id else KEPT
        return {
            "subject": task.subject,
            "active_form": task.active_form,
            "description": task.description,
            "status": task.status,
            "owner": owner,
            "blocked_by": ", ".join(f"#{number}" for number in standing.blocked_by),
        }
