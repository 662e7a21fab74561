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

def shares_of_coins(sampling_probability: float, n: int) -> tuple[int, list[int]]: ...

__all__ = ["KeyedBits", "shares_of_coins"]
