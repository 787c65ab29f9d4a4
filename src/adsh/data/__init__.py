"""Where items come from. Each source gives a length and items by index; nothing here knows of learning."""

from .arrays import ArrayDataset
from .contact_sheet import contact_sheet
from .content import check_overlap, digests, without_overlap
from .dataset import Dataset
from .images import decode
from .items import Items, as_items
from .prepare import Prepared, prepare
from .protocols import PROTOCOLS, Split, split
from .readable import check_readable
from .sequence import SequenceDataset
from .sized import Sized
from .sources import NAMED, open_source
from .summary import similar_rate, summary

__all__ = [
    "NAMED",
    "PROTOCOLS",
    "ArrayDataset",
    "Dataset",
    "Items",
    "Prepared",
    "SequenceDataset",
    "Sized",
    "Split",
    "as_items",
    "check_overlap",
    "check_readable",
    "contact_sheet",
    "decode",
    "digests",
    "open_source",
    "prepare",
    "similar_rate",
    "split",
    "summary",
    "without_overlap",
]
