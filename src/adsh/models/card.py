"""The model card, README.md of a saved model."""

from __future__ import annotations

from typing import Any

_BEGIN, _END = "<!-- adsh evaluate: from here -->", "<!-- adsh evaluate: to here -->"


def model_card(config: dict[str, Any]) -> str:
    """Return the model card in Markdown: what the model is, how it was trained, and how to use it."""
    params, recipe, history = config["params"], config["recipe"], config["history"]
    names = config["labels"].get("database", ())
    shown = ", ".join(str(name) for name in names[:12]) + (", …" if len(names) > 12 else "")
    learned_from = f"{len(names):,} labels: {shown}" if names else "a similarity matrix"
    updates = config.get("lineage", ())
    if updates:
        learned_from += f"; updated {len(updates)} time{'s' * (len(updates) > 1)}"
    seconds = sum(record["seconds"] for record in history)
    shape = " x ".join(str(side) for side in config["input_shape"])
    method = config.get("method", "adsh")
    title = "ADSH" if method == "adsh" else method + "_d" * bool(params.get("whole"))
    learned_by = "Asymmetric Deep Supervised Hashing (Jiang and Li)" if method == "adsh" else f"the method {title}"
    as_learned = "as learned" if method == "adsh" else "by the network, or as docs/reference/methods.md says"
    kept = f"{config['kept']:,}, beside the model, for updates" if config.get("kept") else "none"
    gamma = f", gamma {recipe['gamma']:g}" if method == "adsh" else ""
    return f"""# {title}, {params["bits"]} bits

Binary codes of {config["points"]:,} database points and a network that encodes new ones, learned by
{learned_by} with adsh {config["adsh_version"]}.

| | |
| --- | --- |
| bits | {params["bits"]} |
| network | {params["network"]}, inputs {shape} |
| learned from | {learned_from} |
| distinct rows | {config["rows"]:,} for {config["points"]:,} points |
| preset | {params["preset"]}, seed {params["seed"]} |
| training | outer iterations: {recipe["outer"]}, epochs in each: {recipe["inner"]}, over {recipe["samples"]:,} \
sampled points; batch {recipe["batch_size"]}{gamma}; {seconds:.1f} s on {config["trained_on"]} |
| items kept | {kept} |
| loss | {history[0]["loss"]:.4g} after the first iteration, {history[-1]["loss"]:.4g} after the last |

```python
import adsh

model = adsh.load("this folder")
model.database_codes_     # packed codes of the database, {as_learned}
model.encode(new_items)   # packed codes of new items, by the network
```

Codes are in `numpy.packbits` order, bit 1 for +1. The database codes come from labels, the network's from the items
themselves: `adsh evaluate` measures search with both, and among new items, on queries that were not in training. It
writes `report/` next to this file, and the figures below.

{_BEGIN}
Not evaluated yet.
{_END}
"""


def with_accuracy(card: str, figures: str) -> str:
    """Return the card with these figures in place of earlier ones; what people wrote around them stays."""
    section = f"{_BEGIN}\n## Accuracy\n\n{figures}\n{_END}"
    before, begin, rest = card.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if begin and end:
        return before + section + after
    return f"{card.rstrip()}\n\n{section}\n"
