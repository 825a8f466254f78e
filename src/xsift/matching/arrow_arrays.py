"""Documents that are the values of an Arrow array, and lists of ids that become one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from xsift.matching.results import BatchRows

__all__ = ["buffers", "lists", "with_nulls"]

MOST_SMALL = 2**31 - 1  # matches of a batch that 32 bits can count


def buffers(documents: pa.Array) -> tuple[bool, bool, int, int, int]:
    """Whether offsets have 64 bits and values are text, and the addresses of the validity, offset and data buffers of
    an Arrow array."""
    kind = documents.type
    wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    validity, offsets, data = documents.buffers()
    return wide, is_text, validity.address if validity else 0, offsets.address, data.address if data else 0


def with_nulls(found: BatchRows, valid: Sequence[int], number: int) -> BatchRows:
    """What was found in the documents that are not null, as if it had been all of them: a null has no rows."""
    rows, ends, candidates, candidate_ends, errors = found
    before = np.searchsorted(valid, np.arange(number), side="right")  # documents up to this one that are not null
    spread, candidates_spread = (np.concatenate([[0], them])[before] for them in (ends, candidate_ends))
    return rows, spread, candidates, candidates_spread, {valid[place]: error for place, error in errors.items()}


def lists(values: pa.Array, ends: npt.NDArray[np.int64], missing: npt.NDArray[np.bool_]) -> pa.Array:
    """A list for each document. Offsets have 64 bits where 32 are too few."""
    starts = np.concatenate([[0], ends])
    kind, width = (pa.ListArray, np.int32) if len(values) <= MOST_SMALL else (pa.LargeListArray, np.int64)
    mask = np.append(missing, False) if missing.any() else None
    return kind.from_arrays(pa.array(starts.astype(width), mask=mask), values)
