"""The tables of agents and of where they work."""

from .agent import Agent, AgentVersion
from .environment import Environment, SandboxRules
from .prompt import Prompt
from .review import AgentReview

__all__ = [
    "Agent",
    "AgentReview",
    "AgentVersion",
    "Environment",
    "Prompt",
    "SandboxRules",
]
