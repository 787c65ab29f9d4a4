"""`adsh info`."""

from __future__ import annotations

from .flags import Json, Model
from .show import as_json, facts

EXAMPLE = "adsh info photos-48bits"


def command(model: Model, json: Json = False) -> None:
    """Show what a model's folder holds.

    Its codes, network and training, and the run behind it.
    """
    from ..models.info import model_info

    values = model_info(model)
    if json:
        as_json(values)
    else:
        facts({name.replace("_", " "): value for name, value in values.items()})
