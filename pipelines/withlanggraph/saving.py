"""LangGraph's checkpointer on our tables.

LangGraph saves from threads of its own, which stand in no transaction of ours: what it saves is gathered, and
`store` writes it in the transaction that also begins the step it leads to. Histories are not asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)

from pipelines.models import GraphCheckpoint, GraphWrite, PipelineRun


class TableSaver(BaseCheckpointSaver[int]):
    """Of one run, whose row is locked."""

    def __init__(self, run: PipelineRun) -> None:
        super().__init__()
        self._run = run
        # The last one alone, since nothing goes back behind it and each holds all that the ones before it
        # held. It is the one that was written last: ids are made of the clocks of several machines.
        last = GraphCheckpoint.objects.filter(run=run).order_by("-pk").first()
        self._newest = last.uid if last is not None else ""
        self._checkpoints = {last.uid: last} if last is not None else {}
        writes = GraphWrite.objects.filter(run=run, checkpoint=self._newest).order_by("pk")
        self._writes = {(row.checkpoint, row.task, row.number): row for row in writes}
        self._changed: dict[tuple[str, str, int], GraphWrite] = {}

    @property
    def is_empty(self) -> bool:
        return not self._checkpoints

    def store(self) -> None:
        """Write what is new. Needs the transaction."""
        GraphCheckpoint.objects.bulk_create(
            row for row in self._checkpoints.values() if row.pk is None
        )
        changed = [row for row in self._changed.values() if row.pk is not None]
        GraphWrite.objects.bulk_update(changed, ["channel", "path", "kind", "body"])
        GraphWrite.objects.bulk_create(row for row in self._writes.values() if row.pk is None)

    def config(self, uid: str = "") -> RunnableConfig:
        known: dict[str, Any] = {"thread_id": self._run.uid, "checkpoint_ns": ""}
        return {"configurable": {**known, **({"checkpoint_id": uid} if uid else {})}}

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        wanted = config["configurable"].get("checkpoint_id") or self._newest
        row = self._checkpoints.get(wanted)
        return self._tuple(row) if row is not None else None

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        kind, body = self.serde.dumps_typed(checkpoint)
        told_kind, told = self.serde.dumps_typed(metadata)
        uid = self._newest = checkpoint["id"]
        self._checkpoints[uid] = GraphCheckpoint(
            run=self._run,
            uid=uid,
            parent=config["configurable"].get("checkpoint_id") or "",
            kind=kind,
            body=body,
            metadata_kind=told_kind,
            metadata=told,
        )
        return self.config(uid)

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        checkpoint = config["configurable"]["checkpoint_id"]
        for place, (channel, value) in enumerate(writes):
            number = WRITES_IDX_MAP.get(channel, place)
            known = self._writes.get((checkpoint, task_id, number))
            if known is not None and number >= 0:
                continue
            kind, body = self.serde.dumps_typed(value)
            row = GraphWrite(
                pk=known.pk if known is not None else None,
                run=self._run,
                checkpoint=checkpoint,
                task=task_id,
                number=number,
                channel=channel,
                path=task_path,
                kind=kind,
                body=body,
            )
            if known is not None:
                self._changed[checkpoint, task_id, number] = row
            self._writes[checkpoint, task_id, number] = row

    def _tuple(self, row: GraphCheckpoint) -> CheckpointTuple:
        checkpoint: Checkpoint = self.serde.loads_typed((row.kind, bytes(row.body)))
        metadata = self.serde.loads_typed((row.metadata_kind, bytes(row.metadata)))
        writes = [each for each in self._writes.values() if each.checkpoint == row.uid]
        return CheckpointTuple(
            config=self.config(row.uid),
            checkpoint=checkpoint,
            metadata=metadata,
            parent_config=self.config(row.parent) if row.parent else None,
            pending_writes=[
                (each.task, each.channel, self.serde.loads_typed((each.kind, bytes(each.body))))
                for each in sorted(writes, key=lambda each: (each.path, each.task, each.number))
            ],
        )
