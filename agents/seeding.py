"""Brings the agents, environment and prompts we ship up to date at start-up.

Upserts by seed name. What staff changed stays as it is: a digest of what was last seeded tells a
change of theirs from an older version of ours.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from django.db import transaction

from harness.agentconfig import AgentConfig
from harness.texts import Texts

from .models import Agent, AgentVersion, Environment, Prompt
from .seeds import AGENTS, DEFAULT_ENVIRONMENT, DEFAULT_POLICY, PROMPT_DESCRIPTIONS


def seed_agents() -> None:
    """Idempotent; a second call with the same seeds writes nothing."""
    with transaction.atomic():
        _seed_environment()
        _seed_prompts()
        for name, fresh in AGENTS.items():
            _seed_agent(name, fresh.name, fresh.description, fresh.config)


def digest(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _seed_agent(seed_name: str, name: str, description: str, config: AgentConfig) -> None:
    stored = config.model_dump(mode="json")
    fresh = digest({"name": name, "description": description, "config": stored})
    agent = Agent.objects.select_related("current").filter(seed_name=seed_name).first()
    if agent is None:
        name = _free_name(name)
        agent = Agent.objects.create(seed_name=seed_name, name=name, description=description)
    elif agent.seed_digest == fresh or _digest_of(agent) != agent.seed_digest:
        return  # nothing new, or staff's own by now
    number = agent.current.number + 1 if agent.current else 1
    agent.current = AgentVersion.objects.create(agent=agent, number=number, stored_config=stored)
    agent.name, agent.description, agent.seed_digest = name, description, fresh
    agent.save(update_fields=["current", "name", "description", "seed_digest", "updated_at"])


def _free_name(name: str) -> str:
    """Ours, unless staff gave it to an agent of theirs."""
    taken = Agent.objects.on_offer().filter(organisation=None, name=name).exists()
    return f"{name} (Agentsite)" if taken else name


def _digest_of(agent: Agent) -> str:
    config = agent.current.stored_config if agent.current else None
    return digest({"name": agent.name, "description": agent.description, "config": config})


def _seed_environment() -> None:
    name, description = DEFAULT_ENVIRONMENT
    values = {"name": name, "description": description, "policy": DEFAULT_POLICY}
    fresh = digest(values)
    row, created = Environment.objects.get_or_create(
        seed_name="default", defaults={**values, "seed_digest": fresh}
    )
    own = {field: getattr(row, field) for field in values}
    untouched = row.seed_digest == digest(own)
    if not created and row.seed_digest != fresh and untouched:
        for field, value in values.items():
            setattr(row, field, value)
        row.seed_digest = fresh
        row.version += 1
        row.save(update_fields=[*values, "seed_digest", "version", "updated_at"])


def _seed_prompts() -> None:
    texts = asdict(Texts())
    for field in fields(Texts):
        text = texts[field.name]
        fresh = digest({"text": text})
        row, created = Prompt.objects.get_or_create(
            name=field.name.replace("_", "-"),
            defaults={
                "text": text,
                "description": PROMPT_DESCRIPTIONS[field.name],
                "seed_digest": fresh,
            },
        )
        untouched = digest({"text": row.text}) == row.seed_digest
        if not created and untouched and row.seed_digest != fresh:
            row.text, row.seed_digest = text, fresh
            row.save(update_fields=["text", "seed_digest", "updated_at"])
