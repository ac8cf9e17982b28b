"""The tables of what is spent, and of what may be."""

from .budget import Budget, BudgetPeriod, BudgetStop, Reservation
from .usage import MODEL_LENGTH, ModelPrice, Usage

__all__ = [
    "MODEL_LENGTH",
    "Budget",
    "BudgetPeriod",
    "BudgetStop",
    "ModelPrice",
    "Reservation",
    "Usage",
]
