from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class SpendingConfig(AppConfig):
    name = "spending"
    verbose_name = _("Spending")

    def ready(self) -> None:
        # Only now are there models to import.
        from accounts.happenings import listen  # noqa: PLC0415
        from agents.modelnames import know, price_with  # noqa: PLC0415
        from chat.presentation.failures import add_sentences  # noqa: PLC0415
        from chat.presentation.panels import make_with  # noqa: PLC0415
        from conversations.projections import Turn, follow  # noqa: PLC0415
        from keeping.export import append_to_exports  # noqa: PLC0415
        from memory.embedding.paying import count_with  # noqa: PLC0415
        from owndata.parts import give_with  # noqa: PLC0415

        from . import deletions, owndata, projection  # noqa: PLC0415
        from .embeddings import EmbeddingsCounted  # noqa: PLC0415
        from .export import SPENT  # noqa: PLC0415
        from .meter import draw_meter  # noqa: PLC0415
        from .nearend import draw_near_end  # noqa: PLC0415
        from .prices import priced_models, tariffs  # noqa: PLC0415
        from .refusals import REFUSALS  # noqa: PLC0415

        follow(projection.project, *projection.FOLLOWED, turn=Turn.AFTER)
        make_with("meter", draw_meter)
        make_with("budget", draw_near_end, on=["session.status_running", "session.status_idle"])
        append_to_exports(SPENT)
        add_sentences(REFUSALS)
        give_with("spending", _("What your model calls used and cost"), owndata.files)
        know(priced_models)
        count_with(EmbeddingsCounted())
        price_with(tariffs)
        listen(deletions.hold_first)
