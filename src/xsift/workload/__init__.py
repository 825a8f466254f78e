"""Workloads: documents and subscriptions like those that the papers measured with.

- `dtd.py` reads a DTD.
- `documents.py` makes documents from it, with `writer.pyx`.
- `subscriptions.py` makes subscriptions from it, with `walks.py`.
- `values.py` has what both draw values from; `parameters.py` checks their parameters.
- `presets.py` has the papers' parameters by name.
- `figures.py` measures a workload, and compares it with the paper's.
- `output.py` writes workloads into files.
"""

from xsift.workload.documents import DocumentGenerator, DocumentParameters
from xsift.workload.dtd import Dtd, read_dtd, shipped_dtds
from xsift.workload.presets import PRESETS, Preset, find_preset
from xsift.workload.subscriptions import SubscriptionGenerator, SubscriptionParameters

__all__ = [
    "PRESETS",
    "DocumentGenerator",
    "DocumentParameters",
    "Dtd",
    "Preset",
    "SubscriptionGenerator",
    "SubscriptionParameters",
    "find_preset",
    "read_dtd",
    "shipped_dtds",
]
