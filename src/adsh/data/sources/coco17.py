"""`coco17`: 15,925 COCO images at 128 x 128 with 17 of its categories, packed in one file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...errors import FolderError, InputError
from ...labels import LabelSets
from ..dataset import Dataset
from ..images.decode import Pixels, decode
from ..npz import Npz

FILE = "coco17_128.npz"
CLASSES = (
    *("bicycle", "car", "motorcycle", "airplane", "bus", "train", "truck", "boat", "traffic light"),
    *("fire hydrant", "stop sign", "parking meter", "bench", "bird", "cat", "dog", "horse"),
)


class PackedImages(Dataset):
    """Image files one after the other in one array of bytes: file i is blob[offsets[i]:offsets[i + 1]].

    Args:
        blob: the bytes of all files.
        offsets: (n + 1,), where each file starts, and the end.
        labels: of the images.
        keys: the name of each image.
        classes: the names of all classes.
        name: what errors call the source.
    """

    workers = None

    def __init__(
        self,
        blob: NDArray[np.uint8],
        offsets: NDArray[np.int64],
        labels: LabelSets,
        *,
        keys: list[str],
        classes: tuple[str, ...],
        name: str,
    ) -> None:
        if not len(keys) == len(labels) == len(offsets) - 1 or (np.diff(offsets) < 0).any() or offsets[-1] > len(blob):
            raise InputError(
                f"{name} has {len(offsets) - 1:,} images, {len(labels):,} labels and {len(keys):,} keys in "
                f"{len(blob):,} bytes, and they do not fit together: get the file again"
            )
        self.blob, self.offsets, self.labels = blob, offsets, labels
        self.keys, self.classes, self.name = keys, classes, name

    def __getitem__(self, index: int) -> Pixels:
        at = range(len(self))[index]
        start, end = self.offsets[at], self.offsets[at + 1]
        return decode(self.blob[start:end].tobytes(), f"{self.name}, image {self.keys[index]}")


def open_coco17(root: Path) -> PackedImages:
    """Open coco17_128.npz, in `root` or at that path; a key is the number of the image, as 000042."""
    path = root / FILE if root.is_dir() else root
    arrays = Npz(path)
    missing = [name for name in ("blob", "offsets", "Y", "image_no") if name not in arrays]
    if missing:
        raise FolderError(f"{path} lacks {', '.join(missing)}, so it is not {FILE}: give that file")
    labels = LabelSets.of(np.asarray(arrays["Y"])).with_names(CLASSES)
    keys = [f"{number:06}" for number in arrays["image_no"].tolist()]
    offsets = np.asarray(arrays["offsets"])
    return PackedImages(arrays["blob"], offsets, labels, keys=keys, classes=CLASSES, name="coco17")
