"""Where items come from. Each source gives a length and items by index; nothing here knows of learning."""

from .items import Items, as_items

__all__ = ["Items", "as_items"]
