"""Which head a network gets for these labels: bits of its own by eq. (9), or the posterior of the classes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..config import BITS, ON_FEATURES, POSTERIOR, current_names, preset_name
from .class_votes import MOST

_OF_BITS = {
    "gamma", "target_exponent", "code_update_interval", "sweeps", "refresh_outputs", "use_sign_outputs",
}  # fmt: skip  # values that a posterior head does not have
_AHEAD = "it finds more than a head of bits on features"
_MOST_UNEQUAL = 4.0  # times that the largest class may have the items of the smallest


@dataclass(frozen=True)
class ClassSizes:
    """How many classes there are, and the items of the smallest and of the largest of them."""

    count: int
    smallest: int
    largest: int
    several: bool = False  # whether an item may have several labels: then these are label sets


def choose_head(bits: int, classes: ClassSizes, network: str, given: Iterable[str] = ()) -> tuple[str, str]:
    """Return the head of `modern` and `fast` for these classes, and why.

    Eq. (9) gives classes one code where there are more of them than bits, or where a few have most of the items. On
    features a posterior head finds more in any case, new items most of all: decisions 19 and 20.

    Args:
        bits: the code length.
        classes: their number and sizes.
        network: the network's name.
        given: names of values that the user gave; some are of a head of bits alone, and so ask for one.
    """
    requested = sorted(_OF_BITS & current_names(given))
    on_features = preset_name(network) in ON_FEATURES
    if classes.several:
        if not on_features or classes.count > MOST:
            return BITS, f"items have several labels, {classes.count:,} label sets in all"
    elif classes.count > bits:
        return POSTERIOR, f"{classes.count:,} classes are more than {bits} bits"
    elif classes.largest > _MOST_UNEQUAL * classes.smallest:
        return POSTERIOR, f"the largest class has {classes.largest:,} items and the smallest {classes.smallest:,}"
    if requested:
        return BITS, f"{requested[0]} was given"
    if on_features:
        return POSTERIOR, _AHEAD
    return BITS, f"{classes.count:,} classes of similar sizes are no more than {bits} bits"
