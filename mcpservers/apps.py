from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class McpServersConfig(AppConfig):
    name = "mcpservers"
    verbose_name = _("MCP servers")

    def ready(self) -> None:
        # Only now are there models to import.
        from accounts.sealed import holds_sealed  # noqa: PLC0415
        from chat.attachables import offer_attachables  # noqa: PLC0415
        from chat.commands import offer  # noqa: PLC0415
        from chat.presentation.panels import make_with  # noqa: PLC0415
        from conversations.forgetting import forget_with  # noqa: PLC0415
        from conversations.kitparts import add_part  # noqa: PLC0415

        from . import kitpart  # noqa: PLC0415
        from .attaching import offered_prompts, offered_resources  # noqa: PLC0415
        from .forgetting import forget  # noqa: PLC0415
        from .questionviews import draw_asked  # noqa: PLC0415
        from .secrets import reseal_headers  # noqa: PLC0415
        from .whose import may_serve  # noqa: PLC0415

        add_part(kitpart.part, having=may_serve)
        make_with(
            "asked",
            draw_asked,
            on=["session.status_idle", "session.status_running", "agent.tool_result", "x.rewound"],
        )
        offer(offered_prompts)
        offer_attachables(offered_resources)
        holds_sealed(reseal_headers)
        forget_with("mcpservers", forget)
