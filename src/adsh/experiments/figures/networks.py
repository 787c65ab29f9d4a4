"""The appendix on networks: DHN and DSH with the networks of their papers, and with the common one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..cell import Cell
from ..experiment_config import ON_FEATURES, ExperimentConfig
from ..paper import BITS, NETWORKS
from ..rendering import Rendering
from ..summaries import Done, map_table

TITLE = "MAP with the networks of their papers, and with the common one"
OWN = {"dhn": "alexnet", "dsh": "dsh_net"}


def cells(config: ExperimentConfig) -> list[Cell]:
    """Each with both. The common one takes images, so that networks are what is compared."""
    common = "tiny" if config.network in ON_FEATURES else config.network
    pairs = [(name, network) for name, own in OWN.items() for network in (own, common)]
    wanted = [pair for pair in pairs if not config.methods or pair[0] in config.methods]
    weights: dict[str, dict[str, Any]] = {"alexnet": {"weights": config.alexnet}} if config.alexnet else {}
    return [
        config.cell(name, bits, seed, network=network, **weights.get(network, {}))
        for seed in config.seeds for name, network in wanted for bits in config.bits
    ]  # fmt: skip


def show(config: ExperimentConfig, done: Done) -> Rendering:
    """The table, with the appendix's own figures beside (they differ from those of its Table 1)."""
    beside = [(cell, {**record, "paper": _printed(config, cell)}) for cell, record in done]
    started = {cell.option("network"): cell.option("weights") for cell, _ in done}
    notes = ["All learn from the sampled training items."]
    if "alexnet" in started:
        given = started["alexnet"]
        notes.append(f"AlexNet starts {f'from {Path(given).name}' if given else 'at random: no weights were given'}.")
    if "dsh_net" in started:
        notes.append("The network of DSH starts at random, as in its paper.")
    return Rendering([map_table("networks", TITLE, beside, config.bits, notes)], rows=[record for _, record in beside])


def _printed(config: ExperimentConfig, cell: Cell) -> float | None:
    if config.dataset != "cifar10" or cell.bits not in BITS:
        return None
    whose = cell.option("network") if cell.option("network") == OWN[cell.method] else "common"
    return NETWORKS[cell.method, whose][BITS.index(cell.bits)]
