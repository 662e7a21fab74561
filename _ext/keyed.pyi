from threading import Lock
from typing import Any

class KeyedBits:
    lock: Lock
    capsule: Any
    def __init__(self, stream: Any) -> None: ...
    @property
    def state(self) -> dict[str, Any]: ...
    @state.setter
    def state(self, state: dict[str, Any]) -> None: ...

def law_of_gaps(sampling_probability: float) -> tuple[int, list[int], list[int]]: ...

__all__ = ["KeyedBits", "law_of_gaps"]
