"""The tables of agents and of where they work."""

from .agent import Agent, AgentVersion
from .environment import Environment, SandboxRules
from .prompt import Prompt

__all__ = [
    "Agent",
    "AgentVersion",
    "Environment",
    "Prompt",
    "SandboxRules",
]
