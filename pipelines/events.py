"""What the log of a step's conversation says beside its question."""

from __future__ import annotations

from harness.events import AppEvent


class CommentTold(AppEvent):
    """The question repeats what this event's actor wrote when she decided on an earlier step. The page of the
    run shows the words themselves."""

    type: str = "x.pipeline_comment_told"
    step: str
    """The one that she decided on."""

    def instructs(self) -> bool:
        return True
