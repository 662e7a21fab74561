"""Examples of property tests are the same in every run, so that a failure can be run again."""

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True)
settings.load_profile("repeatable")
