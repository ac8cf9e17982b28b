from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class SkillsAppConfig(AppConfig):
    name = "skills_app"
    verbose_name = _("Skills")
