"""What an agent is, as data: model, instructions, tools with policies, limits, per-role overrides.

A version of an agent stores exactly one of these; the runner builds a run from it. Validation lives
here, so that forms, admin and API refuse the same things with the same words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from harness.messages import ModelSettings
from harness.patterns import When
from harness.roster import Roster
from harness.schemas import require_sound

Effort = Literal["", "low", "medium", "high", "xhigh", "max"]
Permission = Literal["always_allow", "always_ask", "always_deny"]
Role = Literal["subagent", "teammate", "compaction", "grading"]


STORED: Mapping[str, Any] = {"stored": True}
"""The context in which a configuration is read that was taken once. Its schemas are not judged again:
one from before a rule keeps its agent readable, and a call is checked in bounded time all the same."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


_ASKED_FIRST = re.compile(r"person:\w{1,64}|role:(reviewer|admin|owner)", re.ASCII)


class AskOptions(_Strict):
    """Who may answer what a rule asks, and how long it may take."""

    requester_may_not_decide: bool = False
    """Not the person the agent works for."""
    two_people: bool = False
    """Two different people must allow it; one is enough to deny."""
    reviewers_only: bool = False
    """Only reviewers, administrators and owners of the organisation, and staff."""
    service_accounts: tuple[str, ...] = Field(default=(), max_length=20)
    """Ids of service accounts that may answer although one of the conditions above asks for people;
    each still counts as those who manage it."""
    ask_first: str = ""
    """Who is asked before others, `person:` and an id or `role:` and a name; who may answer stays."""
    expires_seconds: int | None = Field(default=None, ge=1, le=31_536_000)
    """After so long without an answer the call is denied; None: it waits for ever."""
    strict: bool = False
    """Every call is asked for anew: no permission given in advance settles it."""

    @field_validator("ask_first")
    @classmethod
    def _names_somebody(cls, name: str) -> str:
        if name and not _ASKED_FIRST.fullmatch(name):
            raise ValueError(
                "who is asked first is “person:” and a person’s id, or one of “role:reviewer”,"
                " “role:admin” and “role:owner”"
            )
        return name


class ToolRule(_Strict):
    """Which calls a rule covers (tools by name or a glob such as `mcp__*`) and what it says."""

    tool: str = Field(min_length=1, max_length=128)
    permission: Permission = "always_allow"
    when: When | None = None
    """Only calls whose arguments match; None: all of them."""
    options: AskOptions = AskOptions()
    """Of weight where the rule asks."""
    apart: bool = False
    """Of weight where a rule of the agent allows a tool that does whatever it is told (a shell): it
    holds as it is written, whatever the agent's own rules say of other tools whose work it could do."""
    note: str = Field(default="", max_length=500)
    """Why it is there, for whoever reads the rules; of no weight."""

    def words(self) -> str:
        """The rule as a person reads it."""
        return f"{self.tool} {self.when.words()}" if self.when else self.tool


MOST_CUSTOM_TOOLS = 64
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class CustomTool(_Strict):
    """A tool that the program behind the API answers; the model is offered it like any other."""

    name: str
    description: str = Field(min_length=1, max_length=10_000)
    input_schema: dict[str, Any] = Field(
        default_factory=lambda: {"type": "object", "properties": {}}
    )

    @field_validator("name")
    @classmethod
    def _is_a_name(cls, name: str) -> str:
        if not _TOOL_NAME.fullmatch(name):
            raise ValueError("a tool's name has 1 to 64 letters, digits, “_” and “-”")
        if name.startswith("mcp__"):
            raise ValueError("names that begin with “mcp__” belong to the tools of MCP servers")
        return name

    @field_validator("input_schema")
    @classmethod
    def _is_a_schema(cls, schema: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        if info.context is STORED:
            return schema
        if schema.get("type") != "object":
            raise ValueError("an input schema has “type”: “object” at its top")
        require_sound(schema)
        return schema


MOST_MCP_SERVERS = 20
SERVER_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?", re.ASCII)
"""What an MCP server is called here: no underscore, so that `mcp__server__tool` is read in one way."""


class McpUse(_Strict):
    """That an agent has the tools of an MCP server; which one has the name is told by who runs the agent."""

    name: str
    tools: tuple[str, ...] | None = Field(default=None, max_length=256)
    """Only these of its tools; None: all."""
    through_provider: bool = False
    """They run where the model does: its service calls them, nobody here. Where that may not be, the agent
    does not have them."""

    @field_validator("name")
    @classmethod
    def _is_a_name(cls, name: str) -> str:
        if not SERVER_NAME.fullmatch(name):
            raise ValueError(
                "an MCP server’s name has 1 to 32 small letters, digits and hyphens inside"
            )
        return name


MOST_SKILLS = 200
SKILL_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*", re.ASCII)
"""The standard's (agentskills.io)."""


class SkillUse(_Strict):
    """That an agent is taught a skill; which one has the name is told by who runs the agent."""

    name: str = Field(max_length=64)
    version: str = Field(default="stable", min_length=1, max_length=50)
    """One version, or a channel (`stable`, `canary`, `latest`) that points to one."""
    digest: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    """SHA-256 that the version must have (a lock); empty: whatever the version holds."""

    @field_validator("name")
    @classmethod
    def _is_a_name(cls, name: str) -> str:
        if not SKILL_NAME.fullmatch(name):
            raise ValueError("a skill’s name has small letters, digits and single hyphens inside")
        return name


MOST_PROMPTS = 10
PROMPT_NAME = SKILL_NAME
USUAL_LABEL = "production"
"""Of a prompt that is named without a version."""
_VALUE_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)
VALUE_LIMIT = 500
"""Characters of what is filled in for one variable of a prompt, which is one line."""


class PromptUse(_Strict):
    """That a named prompt stands behind an agent's instructions; which one has the name is told by who runs
    the agent."""

    name: str = Field(max_length=64)
    version: str = Field(default=USUAL_LABEL, min_length=1, max_length=50)
    """The number of a version, or a label that points to one."""
    values: dict[str, str] = Field(default={}, max_length=50)
    """What is filled in for its variables."""

    @field_validator("name")
    @classmethod
    def _is_a_name(cls, name: str) -> str:
        if not PROMPT_NAME.fullmatch(name):
            raise ValueError("a prompt’s name has small letters, digits and single hyphens inside")
        return name

    @field_validator("values")
    @classmethod
    def _are_values(cls, values: dict[str, str]) -> dict[str, str]:
        for name, value in values.items():
            if not _VALUE_NAME.fullmatch(name):
                raise ValueError("a variable’s name has small letters, digits and “_”")
            if len(value) > VALUE_LIMIT:
                raise ValueError(f"the value of “{name}” is longer than {VALUE_LIMIT} characters")
            if value.splitlines() not in ([], [value]):
                raise ValueError(f"the value of “{name}” has several lines; it can have one")
        return values


class Limits(_Strict):
    steps: int = Field(default=50, ge=1, le=1_000)
    """Model requests of one turn."""
    token_budget: int = Field(default=200_000, ge=1_000)
    """Input and output tokens of one turn, checked before each model request."""
    output_tokens: int = Field(default=16_384, ge=16)
    """Output tokens of one model request."""
    context_window: int = Field(default=200_000, ge=4_000)
    compact_at: float = Field(default=0.7, gt=0, le=1)
    """Share of the context window past which older messages are summarised."""
    retries: int = Field(default=3, ge=0, le=20)
    """How often a model request that failed for a passing reason is tried again."""
    wall_clock_seconds: int = Field(default=3_600, ge=10)
    """Longest time one turn may work, not counting the wait for a person."""


class Shortening(_Strict):
    """Who makes room in a long conversation. Where the model's service cannot, or a prompt would not fit all
    the same, Agentsite does."""

    by: Literal["agentsite", "service"] = "agentsite"
    clear_at: float = Field(default=0.45, gt=0, le=1)
    """Share of the context window past which the service leaves out old results of calls. What it is to
    summarise past is the limit `compact_at`."""
    keep_results: int = Field(default=3, ge=0, le=1_000)
    """The newest of them that it leaves in."""
    keep_thinking: int = Field(default=0, ge=0, le=1_000)
    """The newest turns whose thinking it leaves in; 0: of all."""


class RoleOverride(_Strict):
    """What differs when the agent acts in another role; what is not set is inherited."""

    model: str | None = None
    temperature: float | None = Field(default=None, ge=0, le=2)
    thinking: bool | None = None
    effort: Effort | None = None
    output_tokens: int | None = Field(default=None, ge=16)


class Features(_Strict):
    """Switches of a conversation; an agent holds the defaults for new ones."""

    teams: bool = False
    tracing: bool = False
    approval: bool = False
    plan_mode: bool = False
    memory: bool = True


class AgentConfig(_Strict):
    provider: str = "auto"
    """A name of `providers.table`, or `auto`: the first one the person has a key for."""
    model: str = ""
    """Empty: the provider's default model."""
    instructions: str = Field(default="", max_length=100_000)
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    thinking: bool = False
    effort: Effort = ""
    tools: tuple[ToolRule, ...] = (ToolRule(tool="*"),)
    """Tools no rule covers are not offered. Of several that do, the strictest counts."""
    custom_tools: tuple[CustomTool, ...] = Field(default=(), max_length=MOST_CUSTOM_TOOLS)
    """Offered besides; a rule above may still deny one of them by its name."""
    mcp_servers: tuple[McpUse, ...] = Field(default=(), max_length=MOST_MCP_SERVERS)
    """Their tools ask before each call unless a rule on `mcp:<server>:<tool>` says otherwise."""
    skills: tuple[SkillUse, ...] = Field(default=(), max_length=MOST_SKILLS)
    """What it is taught; a conversation keeps the versions that these are when it begins."""
    prompts: tuple[PromptUse, ...] = Field(default=(), max_length=MOST_PROMPTS)
    """Stand behind the instructions; a conversation keeps the versions that these are when it begins."""
    limits: Limits = Limits()
    shortening: Shortening = Shortening()
    roles: dict[Role, RoleOverride] = {}
    roster: Roster = Roster()
    """Whom it may call on, where it may call on anybody."""
    features: Features = Features()
    sandbox: str = Field(default="", max_length=50_000)
    """A sandbox policy (`sandbox.policy`, YAML or JSON) that takes away from what the
    environment allows; empty: it takes nothing away."""

    @field_validator("custom_tools")
    @classmethod
    def _names_differ(cls, tools: tuple[CustomTool, ...]) -> tuple[CustomTool, ...]:
        names = [tool.name for tool in tools]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two tools are called “{name}”; rename one of them")
        return tools

    @field_validator("mcp_servers")
    @classmethod
    def _servers_differ(cls, servers: tuple[McpUse, ...]) -> tuple[McpUse, ...]:
        names = [server.name for server in servers]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"the MCP server “{name}” is named twice; name it once")
        return servers

    @field_validator("skills")
    @classmethod
    def _skills_differ(cls, skills: tuple[SkillUse, ...]) -> tuple[SkillUse, ...]:
        seen: set[str] = set()
        for skill in skills:
            if skill.name in seen:
                raise ValueError(f"the skill “{skill.name}” is named twice; name it once")
            seen.add(skill.name)
        return skills

    @field_validator("prompts")
    @classmethod
    def _prompts_differ(cls, prompts: tuple[PromptUse, ...]) -> tuple[PromptUse, ...]:
        names = [prompt.name for prompt in prompts]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"the prompt “{name}” is named twice; name it once")
        return prompts

    def settings(self) -> ModelSettings:
        return ModelSettings(
            temperature=self.temperature,
            top_p=self.top_p,
            thinking=self.thinking,
            effort=self.effort,
        )

    def for_role(self, role: Role) -> AgentConfig:
        """The same agent in another role: its overrides applied, all else inherited."""
        override = self.roles.get(role)
        if override is None:
            return self
        changed = override.model_dump(exclude_none=True)
        output_tokens = changed.pop("output_tokens", None)
        if output_tokens is not None:
            changed["limits"] = self.limits.model_copy(update={"output_tokens": output_tokens})
        return self.model_copy(update=changed)
