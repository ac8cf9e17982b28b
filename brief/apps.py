from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class BriefConfig(AppConfig):
    name = "brief"
    verbose_name = _("Briefs")
