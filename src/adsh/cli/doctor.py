"""`adsh doctor`."""

from __future__ import annotations

from typing import Annotated

import typer

from ..utils.progress import say
from .flags import Json
from .show import as_json, facts

EXAMPLE = "adsh doctor"


def command(
    self_test: Annotated[bool, typer.Option(help="Train, save, load and search a small model, in seconds.")] = True,
    json: Json = False,
) -> None:
    """Show what is installed and what is missing, and test it.

    Shows the command that installs each missing part. Exits with status 2 where what is installed does not work.
    """
    from ..runs import doctor

    versions, device, extras, folders = doctor.versions(), doctor.device(), doctor.extras(), doctor.data_folders()
    if not json:
        facts({**versions, "device": device})
        print("\nextras")
        facts(
            {
                f"  {extra.name}": "installed" if not extra.missing else f"{extra.purpose}: {extra.command}"
                for extra in extras
            }
        )
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
            "versions": versions, "device": device, "data": folders,
            "extras": {extra.name: {"missing": list(extra.missing), "purpose": extra.purpose} for extra in extras},
            "self_test": [{"step": step.name, "seconds": step.seconds, "problem": step.problem} for step in steps],
        })  # fmt: skip
    if failed:
        say(f"the self-test failed: {failed[0].name}: {failed[0].problem}")
        raise typer.Exit(2)
    if self_test and not json:
        print("\nall is well" + ", for what needs no torch" * (not doctor.has_torch()))
