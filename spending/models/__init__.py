"""The tables of what is spent, and of what may be."""

from .budget import Budget, BudgetPeriod, BudgetStop, Reservation
from .usage import ModelPrice, Usage

__all__ = [
    "Budget",
    "BudgetPeriod",
    "BudgetStop",
    "ModelPrice",
    "Reservation",
    "Usage",
]
