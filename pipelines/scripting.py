"""The scripted model of runs: it plays what a step's definition says, so that a pipeline runs without any
service. Its place in the script is how often the run came to the step, so it is the same after a restart."""

from __future__ import annotations

from collections.abc import AsyncIterator

from accounts.models import User
from conversations.kitparts import Layer
from conversations.kits import DEMO, choose_provider
from conversations.models import Conversation
from harness.messages import ModelRequest, Piece
from jobs.prepared import Prepared
from providers.scripted import play, reply

from .models import PipelineVersion, StepRun

PROVIDER = {"provider": "scripted", "model": "scripted"}


class Played:
    """Stands in front of a provider and never asks it."""

    name = "scripted"

    def __init__(self, text: str) -> None:
        self._text = text

    async def stream(self, request: ModelRequest) -> AsyncIterator[Piece]:
        async for piece in play(reply(self._text)):
            yield piece

    async def aclose(self) -> None:
        """There is nothing to close."""


def has_scripts_alone(version: PipelineVersion, user: User) -> bool:
    """Whether every step has a script, and no agent of it a model that would answer this person."""
    pinned, organisation = version.pinned(), version.pipeline.organisation
    steps = [step for step in version.spec.steps if not step.approval]
    agents = {pinned[step.name].pk: pinned[step.name] for step in steps}
    return all(step.script for step in steps) and all(
        choose_provider(agent.config, user, organisation).provider == DEMO
        for agent in agents.values()
    )


_SCRIPTED = Prepared(
    lambda given: StepRun.objects.select_related("run__version").filter(
        conversation=given.conversation, run__scripted=True
    )
)


def layer(conversation: Conversation) -> Layer | None:
    """Nothing for the conversations of people, which costs no query."""
    if conversation.parent_id is None:
        return None
    step = _SCRIPTED.first(conversation=conversation.pk)
    if step is None:
        return None
    script = step.run.version.spec.step(step.name).script
    return lambda _beneath: Played(script[min(step.times, len(script)) - 1])
