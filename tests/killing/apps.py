from django.apps import AppConfig


class KillingConfig(AppConfig):
    name = "tests.killing"
    label = "killing"
