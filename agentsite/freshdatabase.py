"""All tables of an empty database at once.

Going through the migrations one operation at a time draws hundreds of models anew for each of them: half a
minute, which a first start would wait for. Nothing here touches a database that holds a table; to bring one
up to date is what Django's own executor does.
"""

from __future__ import annotations

from pathlib import Path

from django.apps import apps
from django.db import router
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations import Migration, RunPython, RunSQL, SeparateDatabaseAndState
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.migrations.state import ProjectState

from agentsite.environment import BASE_DIR

BESIDE_MODELS = (RunPython, RunSQL, SeparateDatabaseAndState)
"""Operations that may make what no model says: indexes for words, triggers."""


def make_all_tables(connection: BaseDatabaseWrapper) -> bool:
    """Whether this database was empty, and now has the schema that the migrations lead to, and says so.

    All in one transaction: ended in its midst, the database is as empty as before. What migrations of others
    do with rows is left out, since there are none. Of our own, what is not `elidable` is done.
    """
    if connection.introspection.table_names():
        return False
    loader = MigrationLoader(connection)
    state = loader.project_state()
    plan = [loader.graph.nodes[key] for key in _in_order(loader)]
    with connection.schema_editor(atomic=True) as editor:
        for model in state.apps.get_models():
            ours = model._meta.can_migrate(connection)  # noqa: SLF001
            if ours and router.allow_migrate_model(connection.alias, model):
                editor.create_model(model)
        for migration in plan:
            _make_beside_models(migration, state, editor)
        recorder = MigrationRecorder(connection)
        editor.create_model(recorder.Migration)
        recorder.migration_qs.bulk_create(
            recorder.Migration(app=app, name=name)
            for migration in plan
            for app, name in [*migration.replaces, (migration.app_label, migration.name)]
        )
    return True


def _in_order(loader: MigrationLoader) -> list[tuple[str, str]]:
    ordered: dict[tuple[str, str], None] = {}
    for leaf in loader.graph.leaf_nodes():
        ordered.update(dict.fromkeys(loader.graph.forwards_plan(leaf)))
    return list(ordered)


def _make_beside_models(
    migration: Migration, state: ProjectState, editor: BaseDatabaseSchemaEditor
) -> None:
    if BASE_DIR not in Path(apps.get_app_config(migration.app_label).path).parents:
        return
    for operation in migration.operations:
        if isinstance(operation, BESIDE_MODELS) and not operation.elidable:
            operation.database_forwards(migration.app_label, editor, state, state)
