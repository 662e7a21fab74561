"""From an event to the privacy losses that it composes, for each neighboring relation."""

__all__: list[str] = []
