"""The database and the queries of a run that was updated: items of several sources, with the labels they have now."""

from __future__ import annotations

from collections.abc import Hashable

from ..data import Dataset
from ..data.joined_dataset import JoinedDataset
from ..labels import LabelSets
from ..models.adsh import ADSH
from ..models.protocol import HashModel
from .database import RunItems
from .run_dir import RunFolder
from .update_inputs import origins_of, parts_of
from .update_record import read_updates


def updated_database(run: RunFolder, model: HashModel) -> Dataset:
    """Return the items of the database in their order, with their keys and the labels that the model has of them."""
    items = RunItems.load(run.path)
    parts = parts_of(model, items, origins_of(run.read_run()))
    assert isinstance(model, ADSH)
    return JoinedDataset(parts, model.database_labels_, items.keys)


def renamed_labels(run: RunFolder, queries: Dataset) -> LabelSets:
    """Return the labels of queries under the names that classes have now; items that lost their label have none."""
    labels = LabelSets.of(queries.labels)
    rename: dict[str, str | None] = {str(name): str(name) for name in labels.names}
    for update in read_updates(run.path):
        rename = {first: None if now is None else update.rename.get(now, now) for first, now in rename.items()}
    original: dict[str, Hashable] = {str(name): name for name in labels.names}
    sets = [
        [original.get(now, now) for name in labels.names_of(k) if (now := rename[str(name)]) is not None]
        for k in range(labels.set_count)
    ]
    return LabelSets(labels.ids, sets)
