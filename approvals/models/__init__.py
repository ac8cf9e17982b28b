"""The tables of approvals and of the rules for tools."""

from .approval import Approval, ApprovalDecision
from .policyrule import PolicyRule

__all__ = [
    "Approval",
    "ApprovalDecision",
    "PolicyRule",
]
