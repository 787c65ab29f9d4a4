"""Which folders are the classes: the sub-folders or, in two layouts that downloads often have, deeper ones.

    photos/archive/CLASS/1.jpg                      one folder too high: it holds one folder, and that the classes
    kaggle/train/CLASS/1.jpg, kaggle/test/CLASS/…   the parts of a split, the classes in each

Both may occur together, and within a part: seg_train/seg_train/CLASS/1.jpg.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

TRAIN, TEST, VALIDATION, UNLABELLED = "train", "test", "validation", "pred"
_PART = re.compile(
    r"(?:.*[_\- ])?(?:(?P<train>train(?:ing)?)|(?P<test>test(?:ing)?)|(?P<validation>val|valid(?:ation)?)"
    r"|(?P<pred>pred(?:iction)?s?|unlabell?ed))\d*(?:[_\- ].*)?",
    re.IGNORECASE,
)
_LISTED = 3  # classes named in a note

Folders = tuple[str, ...]  # from the root down to an image


@dataclass(frozen=True)
class Layout:
    """The class of each image, and how it was found."""

    classes: list[str | None]  # None for an image outside the classes' folders
    parts: list[str | None] = field(default_factory=list)  # TRAIN, TEST, … of each image, where the folder has parts
    note: str = ""  # what was found, where the sub-folders are not the classes
    inside: str = ""  # which folders inside the classes are not told apart, where these hold nothing but folders


@dataclass(frozen=True)
class _Part:
    """A folder of a split."""

    kind: str  # TRAIN, TEST, …
    depth: int | None  # of the classes' folders below it; None where it holds no classes


def find_layout(keys: Sequence[str]) -> Layout:
    """Return the class of each image, by its path below the root."""
    folders = [tuple(key.split("/")[:-1]) for key in keys]
    above = _above_classes(folders)
    below = [one[len(above) :] for one in folders]
    parts = _find_parts(below)
    if parts:
        classes = [_class_in_part(one, parts) for one in below]
        named = ", ".join("/".join((*above, name)) for name in sorted(parts))
        note = f"{named} are taken for the parts of one data set, and the folders in them for the classes"
        kinds = [parts[one[0]].kind if one else None for one in below]
        depths = [(parts[one[0]].depth or 0) + 2 if one else 0 for one in below]
        return Layout(classes, kinds, f"{note}: {_some(classes)}", _folders_inside(classes, below, depths))
    classes = [one[0] if one else None for one in below]
    note = f"the folders in {'/'.join(above)} are taken for the classes: {_some(classes)}" if above else ""
    return Layout(classes, note=note, inside=_folders_inside(classes, below, [1] * len(below)))


def _above_classes(folders: Sequence[Folders]) -> Folders:
    """Return the folders between the root and those of the classes; () where the sub-folders are the classes."""
    nested = [one for one in folders if one]
    if not nested:
        return ()
    first, last = min(nested), max(nested)  # what these two share, all do
    shared = next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
    # A folder that holds images itself, or no two folders, is a class.
    return first[:shared] if all(len(one) > shared for one in nested) else ()


def _find_parts(folders: Sequence[Folders]) -> dict[str, _Part]:
    """Return the parts of a split by folder; {} unless all sub-folders are parts, and share classes with training."""
    kinds: dict[str, str] = {}
    for name in {one[0] for one in folders if one}:
        found = _PART.fullmatch(name)
        if found is None or found.lastgroup is None:
            return {}
        kinds[name] = found.lastgroup
    if len(kinds) < 2 or TRAIN not in kinds.values():
        return {}
    depths, classes = {}, {}
    for name in kinds:
        inside = [one[1:] for one in folders if one[:1] == (name,)]
        depths[name] = len(_above_classes(inside))
        classes[name] = {one[depths[name]] for one in inside if len(one) > depths[name]}
    trained = set().union(*(classes[name] for name, kind in kinds.items() if kind == TRAIN))
    if not trained or any(len(found) > 1 and not found & trained for found in classes.values()):
        return {}
    # One folder that training does not have holds images without classes: test/unknown/1.jpg.
    return {name: _Part(kind, depths[name] if classes[name] & trained else None) for name, kind in kinds.items()}


def _class_in_part(folders: Folders, parts: dict[str, _Part]) -> str | None:
    depth = parts[folders[0]].depth if folders else None
    return folders[depth + 1] if depth is not None and len(folders) > depth + 1 else None


def _folders_inside(classes: Sequence[str | None], folders: Sequence[Folders], depths: Sequence[int]) -> str:
    """Return some folders inside the classes that hold folders alone, at least two, as classes of their own would be.

    Args:
        classes: of each image.
        folders: of each image, from the root down.
        depths: of each image, how many folders its class takes of these.
    """
    inside: dict[str, set[str]] = {}
    for name, one, depth in zip(classes, folders, depths, strict=True):
        if name is not None:
            inside.setdefault(name, set()).add(one[depth] if len(one) > depth else "")
    return _some(
        [f"{name}/{one}" for name, found in inside.items() if len(found) > 1 and "" not in found for one in found]
    )


def _some(classes: Sequence[str | None]) -> str:
    """Return the first classes by name, and how many more there are."""
    names = sorted({name for name in classes if name is not None})
    return ", ".join(names[:_LISTED]) + (f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else "")
