from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class TryoutsConfig(AppConfig):
    name = "tryouts"
    verbose_name = _("Try-outs of agents")
