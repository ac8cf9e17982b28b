"""The tables of the task board and of teams."""

from .board import Board, Dependency, Task, TaskLink

__all__ = ["Board", "Dependency", "Task", "TaskLink"]
