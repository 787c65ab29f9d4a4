"""Where items come from. Each source gives a length and items by index; nothing here knows of learning."""

from .adapt import adapt
from .arrays import ArrayDataset
from .dataset import Dataset
from .duplicates import check_overlap, digests, without_overlap
from .images.contact_sheet import contact_sheet
from .images.decode import decode
from .images.resized import ResizedDataset, Sized
from .inspect import similar_rate, summary
from .items import Items, as_items
from .prepare import Prepared, prepare
from .protocols import PROTOCOLS, Split, split
from .readable import check_readable
from .sequence import SequenceDataset
from .sources.registry import NAMED, open_source
from .tables import open_table

__all__ = [
    "NAMED",
    "PROTOCOLS",
    "ArrayDataset",
    "Dataset",
    "Items",
    "Prepared",
    "ResizedDataset",
    "SequenceDataset",
    "Sized",
    "Split",
    "adapt",
    "as_items",
    "check_overlap",
    "check_readable",
    "contact_sheet",
    "decode",
    "digests",
    "open_source",
    "open_table",
    "prepare",
    "similar_rate",
    "split",
    "summary",
    "without_overlap",
]
