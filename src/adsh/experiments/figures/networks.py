"""The appendix on networks: DHN and DSH with the networks of their own papers, and with the common network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..cell import Cell
from ..experiment_config import FEATURE_NETWORKS, ExperimentConfig
from ..map_table import map_table
from ..paper import BITS, NETWORKS
from ..rendering import Rendering, Results

TITLE = "MAP with the networks of their papers, and with the common one"
OWN_NETWORKS = {"dhn": "alexnet", "dsh": "dsh_net"}


def cells(config: ExperimentConfig) -> list[Cell]:
    """Return cells of each method with both networks; the common one takes images, as the methods' own do."""
    common = "tiny" if config.network in FEATURE_NETWORKS else config.network
    pairs = [(name, network) for name in config.select(tuple(OWN_NETWORKS)) for network in (OWN_NETWORKS[name], common)]
    weights: dict[str, dict[str, Any]] = {"alexnet": {"weights": config.alexnet}} if config.alexnet else {}
    return [
        config.cell(name, bits, seed, network=network, **weights.get(network, {}))
        for seed in config.seeds for name, network in pairs for bits in config.bits
    ]  # fmt: skip


def render(config: ExperimentConfig, results: Results) -> Rendering:
    """Return the table, with the values of the appendix, which differ from those of Table 1."""
    with_paper = [(cell, {**record, "paper": _paper_map(config, cell)}) for cell, record in results]
    weights = {cell.option("network"): cell.option("weights") for cell, _ in results}
    notes = ["All learn from the sampled training items."]
    if "alexnet" in weights:
        file = weights["alexnet"]
        notes.append(f"AlexNet starts {f'from {Path(file).name}' if file else 'at random: no weights were given'}.")
    if "dsh_net" in weights:
        notes.append("The network of DSH starts at random, as in its paper.")
    rows = [record for _, record in with_paper]
    return Rendering([map_table("networks", TITLE, with_paper, config.bits, notes)], rows=rows)


def _paper_map(config: ExperimentConfig, cell: Cell) -> float | None:
    if config.dataset != "cifar10" or cell.bits not in BITS:
        return None
    network = cell.option("network") if cell.option("network") == OWN_NETWORKS[cell.method] else "common"
    return NETWORKS[cell.method, network][BITS.index(cell.bits)]
