"""`adsh doctor`."""

from __future__ import annotations

from typing import Annotated

import typer

from ..utils.progress import say
from .flags import Json
from .show import as_json, facts

EXAMPLE = "adsh doctor"


def command(
    self_test: Annotated[
        bool, typer.Option(help="Learn, save, load and search a little of everything, in seconds.")
    ] = True,
    json: Json = False,
) -> None:
    """Say what is installed and what is missing, and try it out.

    With the command that adds each missing part. Status 2 where what is installed does not work.
    """
    from ..runs import doctor

    told, device, parts, folders = doctor.versions(), doctor.device(), doctor.extras(), doctor.data_folders()
    if not json:
        facts({**told, "device": device})
        print("\nextras")
        facts({f"  {one.name}": "there" if not one.missing else f"{one.purpose}: {one.command}" for one in parts})
        print("\ndata")
        facts({f"  {name}": where for name, where in folders.items()})
        print("\nself-test" * self_test)
    steps = []
    for step in doctor.self_test() if self_test else ():
        steps.append(step)
        if not json:
            print(f"  {step.name}: {f'{step.seconds:.1f} s' if step.problem is None else step.problem}", flush=True)
    failed = [step for step in steps if step.problem is not None]
    if json:
        as_json({
            "versions": told, "device": device, "data": folders,
            "extras": {one.name: {"missing": list(one.missing), "purpose": one.purpose} for one in parts},
            "self_test": [{"step": step.name, "seconds": step.seconds, "problem": step.problem} for step in steps],
        })  # fmt: skip
    if failed:
        say(f"the self-test failed: {failed[0].name}: {failed[0].problem}")
        raise typer.Exit(2)
    if self_test and not json:
        print("\nall is well")
