"""Where items come from. Each source gives a length and items by index; nothing here knows of learning."""

from .arrays import ArrayDataset
from .dataset import Dataset
from .items import Items, as_items
from .protocols import Split, split
from .sources import NAMED, open_source

__all__ = ["NAMED", "ArrayDataset", "Dataset", "Items", "Split", "as_items", "open_source", "split"]
