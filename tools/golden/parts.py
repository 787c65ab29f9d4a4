"""Cases of the parts that need no training: indexes, metrics, label sets, the code table, splits."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import adsh
from adsh.learn import CodeTable

from .cases import Found, case
from .data import blobs, labelled_images, multi_hot
from .normal import digest, folder_digests, plain


def codes(count: int, bits: int, seed: int) -> np.ndarray:
    """Packed codes of a few clusters, so that there are ties."""
    rng = np.random.RandomState(seed)  # its stream never changes
    centres = rng.randint(0, 2, size=(6, bits))
    signs = centres[rng.randint(0, 6, size=count)] ^ (rng.randint(0, 12, size=(count, bits)) == 0)
    return np.packbits(signs.astype(np.uint8), axis=1)


def as_lists(matches: Any) -> list[Any]:
    """What a search found, as JSON."""
    return [[[match.key, match.distance, match.metadata] for match in found] for found in matches]


@case
def an_embedded_index(here: Path) -> Found:
    """Added to, searched in every way, changed, taken from, opened again, made tidy."""
    bits = 20
    stored, queries = codes(120, bits, 0), codes(5, bits, 1)
    rng = np.random.RandomState(2)  # its stream never changes
    vectors = rng.randint(-64, 65, size=(120, 70)).astype(np.float32) / 8
    outputs = rng.randint(-64, 65, size=(5, bits)).astype(np.float32) / 64
    keys = [f"item/{number:03}" for number in range(120)]
    about = [{"class": "cat" if number % 3 else "dog", "year": 1990 + number % 20} for number in range(120)]
    found: dict[str, Any] = {}
    files: dict[str, Any] = {}
    folder = here / "index"
    with adsh.open_index(folder, bits=bits, model="some model") as index:
        found["new"] = index.add(keys[:100], stored[:100], about[:100], vectors=vectors[:100])
        found["changed"] = index.add(keys[90:], stored[90:], about[90:], vectors=vectors[90:])
        found["removed"] = index.remove([*keys[5:60:5], "nothing"])
        index.note("model", "somewhere")
        found["first"] = as_lists(index.search(queries, 7))
    files["before it is tidied"] = folder_digests(folder, here)
    with adsh.open_index(folder) as index:
        found["nearest"] = as_lists(index.search(queries, 9))
        found["paged"] = as_lists(index.search(queries, 5, offset=4))
        found["where"] = as_lists(index.search(queries, 5, where={"class": "dog", "year": {"ge": 2000}}))
        found["within"] = as_lists(index.within(queries, 4))
        found["within, limited"] = as_lists(index.within(queries, 6, where={"class": "cat"}, offset=1, limit=3))
        found["asymmetric"] = plain(as_lists(index.search(outputs, 6, ranking="asymmetric")))
        found["reranked"] = as_lists(index.search(queries, 8, vectors=vectors[:5], rerank=True))
        got = index.get(["item/001", "item/005"])
        found["got"] = [None if item is None else [item.key, item.code.hex() if isinstance(item.code, bytes) else
                        np.asarray(item.code).tobytes().hex(), item.metadata] for item in got]  # fmt: skip
        found["keys"] = index.keys()
        found["noted"] = [index.noted("model"), index.noted("other")]
        found["info"] = plain(index.info(), here)
        index.compact()
        found["verified"] = index.verify()
        found["info when tidy"] = plain(index.info(), here)
        index.to_npy(here / "codes.npy")
        found["npy"] = digest(np.load(here / "codes.npy"))
    files["tidied"] = folder_digests(folder, here)
    return {"codes": found, "numbers": {}, "files": files}


@case
def metrics(here: Path) -> Found:
    """Every metric in its ways, and a column of an evaluation."""
    bits = 16
    database, queries = codes(150, bits, 3), codes(12, bits, 4)
    labels, query_labels = multi_hot(150)[1], multi_hot(12)[1]
    data, found = (queries, database, query_labels, labels), {}
    m = adsh.metrics
    for ties in ("expected", "stable"):
        found[f"map, {ties}"] = m.mean_average_precision(*data, bits=bits, ties=ties)
        found[f"map of 20, {ties}"] = m.mean_average_precision(*data, bits=bits, k=20, ties=ties, divisor="min")
        found[f"average precisions, {ties}"] = digest(np.asarray(m.average_precisions(*data, bits=bits, ties=ties)))
    found["bounds"] = [digest(np.asarray(side)) for side in m.average_precision_bounds(*data, bits=bits)]
    places = (1, 5, 10, 50)
    found["precision"] = digest(np.asarray(m.precision_at(*data, bits=bits, ks=places)))
    found["recall"] = digest(np.asarray(m.recall_at(*data, bits=bits, ks=places)))
    found["ndcg"] = digest(np.asarray(m.ndcg_at(*data, bits=bits, k=10)))
    curve = m.precision_recall_by_radius(*data, bits=bits)
    found["by radius"] = {name: digest(np.asarray(value)) for name, value in vars(curve).items()}
    column = adsh.evaluate.evaluate_codes(*data, bits=bits)
    found["column"] = {name: digest(np.asarray(value)) for name, value in asdict(column).items()}
    return {"codes": {}, "numbers": found, "files": {}}


@case
def label_sets(here: Path) -> Found:
    """Labels given in each form."""
    forms = {
        "integers": [3, 1, -1, 3, 2], "strings": ["b", "a", "", "b"], "sets": [{"x", "y"}, set(), {"y"}, {"x", "y"}],
        "multi-hot": multi_hot(20)[1],
    }  # fmt: skip
    found = {}
    for name, labels in forms.items():
        sets = adsh.LabelSets.of(labels)
        arrays = {part: digest(np.asarray(getattr(sets, part))) for part in ("ids", "sizes", "starts", "tags", "empty")}
        found[name] = arrays | {"names": [str(of) for of in sets.names], "sets": sets.set_count}
    return {"codes": found, "numbers": {}, "files": {}}


@case
def the_code_table(here: Path) -> Found:
    """Updates of V by labels and by a given similarity."""
    found: dict[str, dict[str, Any]] = {"codes": {}, "numbers": {}, "files": {}}
    labels = multi_hot(40)[1]
    similar = np.where(labels @ labels.T > 0, 1, -1)
    tables = {"labels": CodeTable(labels, 10), "similarity": CodeTable.from_similarity(similar, 10)}
    for name, table in tables.items():
        rng = np.random.RandomState(5)  # its stream never changes
        for _ in range(3):
            omega = np.sort(rng.permutation(40)[:15])
            changed = table.update(omega, rng.randint(-63, 64, size=(15, 10)) / 64, 2.0)
        found["codes"][name] = digest(table.dense())
        found["codes"][f"{name}, rows"] = digest(np.asarray(table.row_numbers()))
        found["numbers"][name] = [float(changed), digest(table.gram())]
    return found


@case
def splits_and_sources(here: Path) -> Found:
    """Queries and database, what a source holds, and what its items are."""
    features, labels = blobs(200, classes=4)
    np.savez(here / "blobs.npz", features=features, labels=labels)
    source = adsh.data.open_source(str(here / "blobs.npz"))
    found: dict[str, Any] = {"summary": plain(adsh.data.summary(source), here), "keys": digest(list(source.keys))}
    for protocol in ("holdout", "all"):
        for seed in (0, 7):
            drawn = adsh.data.split(source, protocol, seed)
            arrays = {name: value for name, value in vars(drawn).items() if isinstance(value, np.ndarray)}
            found[f"{protocol}, {seed}"] = {name: digest(value) for name, value in arrays.items()}
    images, labels = labelled_images(9)
    dataset = adsh.data.ArrayDataset(images, labels)
    sized = adsh.data.Sized(dataset, 8)
    found["sized"] = digest(np.stack([np.asarray(sized[at]) for at in range(len(sized))]))
    found["digests"] = digest([str(of) for of in adsh.data.digests(dataset)])
    found["similar rate"] = adsh.data.similar_rate(adsh.LabelSets.of(labels))
    return {"codes": found, "numbers": {}, "files": {}}
