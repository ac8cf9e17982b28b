"""The bodies of `/api`: what is sent is checked here, what is answered is described here.

Rules that are not about form (which presets there are, whose conversation it is) are the actions'.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from rest_framework import serializers

from conversations.actions.branching import ACTS
from conversations.actions.compacting import FOCUS_LENGTH
from conversations.models import ShareRole
from reading.digits import amount_of
from spending.amounts import LARGEST_DOLLARS, units_of

EFFORTS = ("high", "max")


class FaultBody(serializers.Serializer[Any]):
    code = serializers.CharField()
    message = serializers.CharField()
    hint = serializers.CharField()
    field = serializers.CharField()


class ErrorBody(serializers.Serializer[Any]):
    code = serializers.CharField(help_text="Stable; see the table of codes.")
    message = serializers.CharField(help_text="What is wrong, for a person.")
    hint = serializers.CharField(help_text="What to do about it; may be empty.")
    field = serializers.CharField(help_text="Which input it is about; may be empty.")
    faults = FaultBody(
        many=True,
        required=False,
        help_text="Of a body: all that is wrong with it, up to ten; the first is the one above.",
    )


class ErrorAnswer(serializers.Serializer[Any]):
    error = ErrorBody()


class StrictText(serializers.CharField):
    """Text and nothing that could be made into one."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return str(super().to_internal_value(data))


class StrictNumber(serializers.FloatField):
    """A number that is one: neither “nan” nor true."""

    def to_internal_value(self, data: Any) -> float:
        amount = amount_of(data)
        if amount is None:
            self.fail("invalid")
        return amount


class Dollars(StrictNumber):
    """An amount of US dollars, which comes out in hundred-millionths of one."""

    def __init__(self, **given: Any) -> None:
        super().__init__(min_value=0, max_value=float(LARGEST_DOLLARS), **given)

    def run_validation(self, data: Any = serializers.empty) -> int | None:
        amount = super().run_validation(data)
        return None if amount is None else units_of(Decimal(str(amount)))


class StrictSwitch(serializers.BooleanField):
    """true or false: a number or a word that means one is more often a mistake than a wish."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class BeginChat(serializers.Serializer[Any]):
    """All optional. Fields that are not known here are passed over and named in `ignored`."""

    system_prompt = StrictText(
        required=False,
        allow_null=True,
        allow_blank=True,
        trim_whitespace=False,
        max_length=100_000,
        help_text="Stands in the place of the preset's instructions.",
    )
    preset = StrictText(
        required=False,
        allow_null=True,
        allow_blank=True,
        max_length=200,
        help_text="Id or name of an agent (`GET /api/presets`); empty: the caller's default.",
    )
    enable_teams = StrictSwitch(required=False)
    enable_tracing = StrictSwitch(required=False)
    enable_approval = StrictSwitch(required=False)
    enable_plan_mode = StrictSwitch(required=False)
    enable_thinking = StrictSwitch(
        required=False, allow_null=True, help_text="null: as the preset has it."
    )
    thinking_effort = StrictText(
        required=False,
        allow_null=True,
        allow_blank=True,
        max_length=40,
        help_text="`max` or `xhigh` mean max; anything else means high.",
    )


class ChatBegun(serializers.Serializer[Any]):
    conversation_id = serializers.CharField()
    ignored = serializers.ListField(child=serializers.CharField(), help_text="Unknown fields.")


class Ticket(serializers.Serializer[Any]):
    ticket = serializers.CharField(help_text="For `?ticket=` of the socket; works once.")
    expires_at = serializers.DateTimeField()


class MatchBody(serializers.Serializer[Any]):
    event_id = serializers.CharField(help_text="The message in which it was found.")
    text = serializers.CharField(help_text="What stands there.")
    created_at = serializers.DateTimeField()


class ConversationRow(serializers.Serializer[Any]):
    id = serializers.CharField()
    title = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()
    message_count = serializers.IntegerField()
    status = serializers.ChoiceField(choices=["idle", "running", "rescheduling", "terminated"])
    unread = serializers.BooleanField(help_text="It came to rest, and one has not seen that yet.")
    match = MatchBody(
        allow_null=True, help_text="With `q`, the first place; null: a title or a filter alone."
    )


class MessageRow(serializers.Serializer[Any]):
    id = serializers.CharField()
    seq = serializers.IntegerField()
    role = serializers.ChoiceField(choices=["user", "assistant"])
    content = serializers.JSONField(help_text="A person's text, or a list of content blocks.")
    created_at = serializers.DateTimeField()


class WaitingMessage(serializers.Serializer[Any]):
    id = serializers.CharField()
    seq = serializers.IntegerField()
    content = serializers.CharField()
    created_at = serializers.DateTimeField()


class ConversationDetail(serializers.Serializer[Any]):
    id = serializers.CharField()
    title = serializers.CharField(allow_null=True)
    system_prompt = serializers.CharField(allow_null=True)
    preset = serializers.CharField(help_text="As it was sent; else the agent's name.")
    preset_id = serializers.CharField()
    enable_teams = serializers.BooleanField()
    enable_tracing = serializers.BooleanField()
    enable_approval = serializers.BooleanField()
    enable_plan_mode = serializers.BooleanField()
    enable_thinking = serializers.BooleanField()
    thinking_effort = serializers.ChoiceField(choices=EFFORTS)
    created_at = serializers.DateTimeField()
    status = serializers.ChoiceField(choices=["idle", "running", "rescheduling", "terminated"])
    last_seq = serializers.IntegerField(help_text="Give it as `?after=` to the socket.")
    messages = MessageRow(many=True)
    messages_cursor = serializers.CharField(
        allow_null=True, help_text="Give it as `?cursor=` for the messages behind these."
    )
    waiting_messages = WaitingMessage(many=True)
    total_input_tokens = serializers.IntegerField()
    total_output_tokens = serializers.IntegerField()


class Deleted(serializers.Serializer[Any]):
    status = serializers.ChoiceField(choices=["deleted"])


class ToolRow(serializers.Serializer[Any]):
    name = serializers.CharField()
    description = serializers.CharField()
    effect = serializers.ChoiceField(choices=["read", "workspace", "outside"])
    asks = serializers.BooleanField(help_text="Whether a call waits for a person.")
    owner = serializers.CharField(allow_blank=True, help_text="Which part of the software it is.")
    read_only = serializers.BooleanField()  # type: ignore[assignment]  # of the class it is gone
    destructive = serializers.BooleanField()
    idempotent = serializers.BooleanField(help_text="Twice is the same as once.")
    untrusted = serializers.BooleanField(help_text="What it answers was written by strangers.")
    always_asks = serializers.BooleanField(help_text="Every call waits for a person.")
    general = serializers.BooleanField(help_text="It does whatever it is told.")
    external = serializers.BooleanField(help_text="A program or a person answers it.")
    direct = serializers.BooleanField(help_text="People may use it without a model.")
    feature = serializers.CharField(allow_blank=True, help_text="The switch that offers it.")
    timeout_seconds = serializers.FloatField()
    input_schema = serializers.DictField(help_text="JSON Schema of its input.")


class NamedRow(serializers.Serializer[Any]):
    name = serializers.CharField()
    description = serializers.CharField()


class PresetRow(NamedRow):
    id = serializers.CharField()


class FileRow(serializers.Serializer[Any]):
    name = serializers.CharField()
    path = serializers.CharField()
    size = serializers.IntegerField()


class FileContent(FileRow):
    content = serializers.CharField(allow_null=True, help_text="null for a binary file.")
    binary = serializers.BooleanField()
    language = serializers.CharField(allow_null=True)
    truncated = serializers.BooleanField(help_text="Only the first 102,400 characters are here.")


class UploadForm(serializers.Serializer[Any]):
    """For the schema; the form is read piece by piece."""

    files = serializers.ListField(child=serializers.FileField())


class Uploaded(serializers.Serializer[Any]):
    uploaded = serializers.ListField(child=serializers.CharField(), help_text="Relative paths.")


class Branching(serializers.Serializer[Any]):
    act = serializers.ChoiceField(
        choices=ACTS,
        help_text=(
            "`edit`: say a message anew; `regenerate`: have an answer done anew; `rewind`: go back; "
            "`switch`: go on with the newest dialogue that leads through the event."
        ),
    )
    event_id = StrictText(
        max_length=40, help_text="Of a message, an answer, or any event of the log."
    )
    content = StrictText(
        required=False,
        default="",
        allow_blank=True,
        help_text="Of `edit`: the message's new words.",
    )
    model = StrictText(
        required=False,
        default="",
        allow_blank=True,
        max_length=100,
        help_text="Of `regenerate`: asked in place of the agent's own, this time.",
    )
    files = serializers.BooleanField(
        required=False,
        default=True,
        help_text="Whether files go back as well; false leaves them as they are.",
    )


class Seeing(serializers.Serializer[Any]):
    seq = serializers.IntegerField(
        required=False,
        default=None,
        allow_null=True,
        min_value=0,
        max_value=2**53,
        help_text="Number of the last event that was seen; null: all there is.",
    )


class SeenUpTo(serializers.Serializer[Any]):
    seen_seq = serializers.IntegerField(help_text="Never less than before.")


class Forking(serializers.Serializer[Any]):
    event_id = StrictText(
        max_length=40,
        help_text="Of a message, before which it ends, or of an answer, with whose turn it ends.",
    )
    title = StrictText(required=False, default="", allow_blank=True, max_length=200)


class Forked(serializers.Serializer[Any]):
    id = serializers.CharField(help_text="Of the new conversation.")


class Branched(serializers.Serializer[Any]):
    event_id = serializers.CharField(help_text="Of the new message, or of the event that says it.")
    seq = serializers.IntegerField(help_text="Its number in the log.")


class Compacting(serializers.Serializer[Any]):
    focus = StrictText(
        required=False,
        default="",
        allow_blank=True,
        max_length=FOCUS_LENGTH,
        help_text="What the summary is to dwell on.",
    )


class ContextRequest(serializers.Serializer[Any]):
    id = serializers.CharField(help_text="Of the model request.")
    seq = serializers.IntegerField()
    step = serializers.IntegerField(help_text="Counts the requests of its turn from 1.")
    model = serializers.CharField()
    window = serializers.IntegerField(help_text="Tokens of the agent's context window.")
    reserve = serializers.IntegerField(help_text="Of them kept free for the reply.")
    total = serializers.IntegerField(help_text="Of the prompt, estimated.")
    tokens = serializers.DictField(
        child=serializers.IntegerField(), help_text="By source: `system`, `tools`, `history` …"
    )
    cut = serializers.ListField(
        child=serializers.CharField(), help_text="What did not fit, with the tool that rereads it."
    )
    cleared = serializers.IntegerField(
        help_text="Tokens that the model's service is expected to leave out by itself; not in `total`."
    )
    service = serializers.CharField(
        help_text="Who shortens what, where the agent has the service do it; empty: Agentsite does."
    )


class ContextPlans(serializers.Serializer[Any]):
    requests = ContextRequest(many=True, help_text="The newest first, at most 30.")


class BackgroundEnded(serializers.Serializer[Any]):
    ended = serializers.IntegerField(help_text="How many ran; their end is told in the log.")


class ApprovalRow(serializers.Serializer[Any]):
    id = serializers.CharField()
    conversation_id = serializers.CharField()
    tool_use_id = serializers.CharField()
    tool = serializers.CharField()
    host = serializers.CharField(
        allow_blank=True, help_text="The machine that it goes to, of a tool of an MCP server."
    )
    input = serializers.DictField(help_text="What it would run with, or ran with.")
    acts_on = serializers.DictField(
        help_text="What that names, as it was when it was asked: `words`, `changes` (`path`, `diff`, "
        "`added`, `removed`, `created`) and whether that is `whole`. Empty where the input says it all."
    )
    reason = serializers.CharField(help_text="Why it waits.")
    risk = serializers.ChoiceField(choices=["low", "medium", "high"])
    state = serializers.ChoiceField(
        choices=["pending", "approved", "denied", "expired", "cancelled"]
    )
    needed = serializers.IntegerField(help_text="How many people must allow it.")
    allowed = serializers.IntegerField(
        help_text="How many of them have and may still; 0 for what does not wait."
    )
    assignee = serializers.CharField(
        allow_blank=True,
        help_text="Who is asked first: `person:` and an id, or `role:` and a name.",
    )
    asked_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True, help_text="Denied by itself then.")


class Assignee(serializers.Serializer[Any]):
    assignee = StrictText(
        allow_blank=True,
        max_length=80,
        help_text=(
            "`person:` and an id, `role:reviewer`, `role:admin` or `role:owner`; empty: nobody in "
            "particular."
        ),
    )


class BudgetRow(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="Whom it caps, in words.")
    scope = serializers.ChoiceField(
        choices=["deployment", "organisation", "user", "conversation", "person"]
    )
    unit = serializers.ChoiceField(choices=["tokens", "money"])
    period = serializers.ChoiceField(choices=["day", "month", "total", "run"])
    limit = serializers.IntegerField(help_text="Tokens, or millionths of a US dollar.")
    spent = serializers.IntegerField(help_text="In this period, or in the latest run.")
    reserved = serializers.IntegerField(help_text="For calls under way.")
    ends_on = serializers.DateField(allow_null=True, help_text="When its next period begins.")


class NewBudget(serializers.Serializer[Any]):
    unit = serializers.ChoiceField(choices=["tokens", "money"])
    period = serializers.ChoiceField(choices=["day", "month", "total", "run"])
    limit = serializers.IntegerField(
        min_value=0,
        max_value=10**15,
        allow_null=True,
        help_text="Tokens, or millionths of a US dollar; null lifts it.",
    )


class UseTool(serializers.Serializer[Any]):
    name = StrictText(max_length=64, help_text="One of GET /api/tools with `direct`.")
    arguments = serializers.DictField(required=False, help_text="By the tool's input schema.")
    conversation_id = StrictText(
        required=False, max_length=64, help_text="Whose workspace it reads; an empty one without."
    )


class ToolUsed(serializers.Serializer[Any]):
    content = serializers.ListField(child=serializers.DictField(), help_text="Content blocks.")
    is_error = serializers.BooleanField(help_text="The tool itself refused, in words.")
    untrusted = serializers.BooleanField(help_text="It shows what strangers wrote.")


class AuthConfig(serializers.Serializer[Any]):
    enabled = serializers.BooleanField()
    google_client_id = serializers.CharField(allow_blank=True)
    methods = serializers.ListField(child=serializers.CharField())


class Me(serializers.Serializer[Any]):
    authenticated = serializers.BooleanField()
    id = serializers.CharField()
    email = serializers.CharField(allow_blank=True)
    name = serializers.CharField()
    picture = serializers.CharField(allow_null=True)
    organisation = serializers.CharField()
    scopes = serializers.ListField(
        child=serializers.CharField(), allow_null=True, help_text="null for a browser's session."
    )


class Health(serializers.Serializer[Any]):
    status = serializers.ChoiceField(choices=["ok", "unavailable"])
    model = serializers.CharField()


class NamedThing(serializers.Serializer[Any]):
    id = serializers.CharField()
    name = serializers.CharField()


class DefaultsShape(serializers.Serializer[Any]):
    preset = NamedThing()
    environment = NamedThing()


class NewDefaults(serializers.Serializer[Any]):
    preset = StrictText(required=False, allow_null=True, max_length=200, help_text="Id or name.")
    environment = StrictText(
        required=False, allow_null=True, max_length=200, help_text="Id or name."
    )

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        fields = super().get_fields()
        fields["for"] = serializers.ChoiceField(choices=["me", "organisation"], required=False)
        return fields


class ShareRow(serializers.Serializer[Any]):
    id = serializers.CharField()
    user = NamedThing(allow_null=True, help_text="null: everybody in its organisation.")
    role = serializers.ChoiceField(choices=ShareRole.values)
    created_at = serializers.DateTimeField()


class NewShare(serializers.Serializer[Any]):
    user_id = StrictText(
        max_length=64,
        allow_null=True,
        help_text="A member of its organisation; null: everybody in it.",
    )
    role = serializers.ChoiceField(
        choices=ShareRole.values,
        help_text="`viewer` reads, `writer` also sends messages, `decider` also answers approvals.",
    )
