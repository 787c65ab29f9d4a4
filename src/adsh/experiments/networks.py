"""The appendix on networks: DHN and DSH with the networks of their papers, and with the common one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .cell import Cell
from .paper import BITS, NETWORKS
from .setting import ON_FEATURES, Setting
from .shown import Shown
from .summaries import Done, map_table

TITLE = "MAP with the networks of their papers, and with the common one"
OWN = {"dhn": "alexnet", "dsh": "dsh_net"}


def cells(setting: Setting) -> list[Cell]:
    """Each with both. The common one takes images, so that networks are what is compared."""
    common = "tiny" if setting.network in ON_FEATURES else setting.network
    pairs = [(name, network) for name, own in OWN.items() for network in (own, common)]
    wanted = [pair for pair in pairs if not setting.methods or pair[0] in setting.methods]
    weights: dict[str, dict[str, Any]] = {"alexnet": {"weights": setting.alexnet}} if setting.alexnet else {}
    return [
        setting.cell(name, bits, seed, network=network, **weights.get(network, {}))
        for seed in setting.seeds for name, network in wanted for bits in setting.bits
    ]  # fmt: skip


def show(setting: Setting, done: Done) -> Shown:
    """The table, with the appendix's own figures beside (they differ from those of its Table 1)."""
    beside = [(cell, {**record, "paper": _printed(setting, cell)}) for cell, record in done]
    started = {cell.option("network"): cell.option("weights") for cell, _ in done}
    notes = ["All learn from the sampled training items."]
    if "alexnet" in started:
        given = started["alexnet"]
        notes.append(f"AlexNet starts {f'from {Path(given).name}' if given else 'at random: no weights were given'}.")
    if "dsh_net" in started:
        notes.append("The network of DSH starts at random, as in its paper.")
    return Shown([map_table("networks", TITLE, beside, setting.bits, notes)], rows=[record for _, record in beside])


def _printed(setting: Setting, cell: Cell) -> float | None:
    if setting.dataset != "cifar10" or cell.bits not in BITS:
        return None
    whose = cell.option("network") if cell.option("network") == OWN[cell.method] else "common"
    return NETWORKS[cell.method, whose][BITS.index(cell.bits)]
