from collections.abc import Sequence

class DocumentWriter:
    def __init__(
        self,
        *,
        particles: Sequence[tuple[int, ...]],
        parts: Sequence[int],
        elements: Sequence[tuple[bytes, int, int, int]],
        attributes: Sequence[tuple[bytes, int, int, int, int]],
        values: Sequence[bytes],
        words: Sequence[bytes],
        tables: Sequence[tuple[int, int]],
        cumulative: Sequence[float],
        weights: Sequence[float],
        root: int,
        levels: int,
        repeats: int,
        text_words: int,
        optional_odds: float,
        attribute_odds: float,
        limit: int,
        elastic: bool,
        seed: int,
    ) -> None: ...
    def document(self, number: int) -> bytes: ...
