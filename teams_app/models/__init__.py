"""The tables of the task board and of teams."""

from .board import Board, Dependency, Task, TaskLink
from .team import Mail, Team, Teammate, TeamRequest

__all__ = ["Board", "Dependency", "Mail", "Task", "TaskLink", "Team", "TeamRequest", "Teammate"]
