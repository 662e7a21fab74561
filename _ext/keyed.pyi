from contextlib import AbstractContextManager
from typing import Any

class KeyedBits:
    lock: AbstractContextManager[None]
    capsule: Any
    def __init__(self, key: bytes | None = None) -> None: ...
    @property
    def state(self) -> dict[str, Any]: ...
    @state.setter
    def state(self, state: dict[str, Any]) -> None: ...

def counter_mode(key: bytes, block: int) -> Any: ...

__all__ = ["KeyedBits", "counter_mode"]
