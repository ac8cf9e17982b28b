from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class McpClientsConfig(AppConfig):
    name = "mcpclients"
    verbose_name = _("Clients of /mcp")
