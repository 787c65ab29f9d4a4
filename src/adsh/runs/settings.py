"""The settings of a training run, from flags and run.toml, and the method they describe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path
from typing import Any

from ..config import COMPILE_MODE, source_values
from ..data import NAMED
from ..data.prepare import DISK, NONE, RAM
from ..errors import InputError
from ..hamming.bits import DEFAULT_BITS
from ..methods import DEEP, METHODS, create
from ..models.adsh import ADSH
from ..models.protocol import HashModel
from ..models.storage_format import RUN
from ..utils.files import find_file, read_toml

FILE_NAMES = {"drop_duplicates": "skip_copies", "deterministic_shards": "parts"}
"""Fields that run.toml has under an older name, which is still written, and accepted as a keyword."""

STRICT = {"skip_bad": False, "drop_duplicates": False}
"""What `strict=True` (--strict) stands for: whatever is wrong with the data stops the run."""

_PATHS = ("source", "root", "labels", "weights")
_ADSH_ONLY = ("gamma", "keep")
_NETWORK_ONLY = (
    "network", "weights", "samples", "outer", "inner", "batch_size", "lr", "compile", "deterministic_shards",
    "checkpoint_every",
)  # fmt: skip


@dataclass(frozen=True)
class TrainSettings:
    """What a training run does. None leaves a value to the preset, the data or the machine."""

    # The data

    source: str
    """A name (digits, cifar10, …), a folder with a sub-folder per class, a list of files, or arrays."""
    root: str | None = None
    """Where the files of a named source are."""
    labels: str | None = None
    """A .npy of labels, for a source of arrays."""
    size: int | None = None
    """The side that images in files are resized to; by default what the network takes."""
    skip_bad: bool = True
    """Leave out files that cannot be read, and list them; False stops the run instead."""
    drop_duplicates: bool = True
    """Leave out database items that are copies of queries, and list them; False stops the run instead."""
    cache: str = RAM
    """Where decoded images are cached: ram, disk, none, or a folder."""
    cache_size: str | None = None
    """The largest size of the cache, such as 8GB."""
    workers: int | None = None
    """Threads that read files."""
    protocol: str = "holdout"
    """How items are split into queries, database and training set."""
    split_seed: int = 0
    """The seed of the split."""

    # The method

    method: str = ADSH.name
    """adsh, or a name of `adsh.methods`."""
    options: str | None = None
    """Options of another method than adsh, such as rounds=10,hash_function=ridge."""
    bits: int = DEFAULT_BITS
    """Code length."""
    network: str | None = None
    """The network that learns to encode new items."""
    weights: str | None = None
    """A file that the network starts from, or "pretrained"."""

    # The training

    preset: str = "modern"
    """The values that the fields left None take: see `adsh.config.recipe`."""
    gamma: float | None = None
    """Weight of |v - u|^2 in eq. (4)."""
    samples: int | None = None
    """Points sampled in an outer iteration, m."""
    outer: int | None = None
    """Outer iterations, T_out."""
    inner: int | None = None
    """Epochs over the sample in each outer iteration, T_in."""
    batch_size: int | None = None
    """Items in a mini-batch."""
    lr: float | None = None
    """Learning rate."""
    compile: bool | None = None
    """Whether the network is compiled before training, on a GPU."""
    deterministic_shards: int | None = None
    """Shards of a mini-batch: any number of processes that divides it gives the same bits, on a CPU."""
    keep: int | None = None
    """Items of each label to keep beside the model for updates; 0 for none."""
    unlabelled: str = "network"
    """How items without a label get codes."""
    device: str = "auto"
    """Where to train."""
    seed: int = 0
    """The seed of training."""

    # The report

    baselines: bool = True
    """Evaluate float cosine and a linear classifier on the same features too."""
    folds: int | None = None
    """Folds to cross-fit in; 0 for none. By default 5 or fewer, where the held-out part is small and fits are short."""

    # What is written while it trains

    checkpoint_every: int | None = None
    """Outer iterations between two checkpoints; 0 for none. By default some, where training takes over two minutes."""
    tensorboard: bool = False
    """Write TensorBoard files."""

    @classmethod
    def of(cls, config: Path | None = None, **values: Any) -> TrainSettings:
        """Return settings from the table [train] of a TOML file, and from keywords, which take precedence.

        Args:
            config: A TOML file, such as run.toml of an earlier run.
            **values: Fields by name; None leaves a field as it is in the file, or at its default. `strict=True` stands
                for the fields of `STRICT` that are not given.

        Raises:
            InputError: A name is unknown, a value in the file has another type, or no source is given.
        """
        known = [field.name for field in fields(cls)]
        merged = _read_table(config) if config is not None else {}
        if values.pop("strict", None):
            merged |= STRICT
        for name, value in current_names(values).items():
            if name not in known:
                raise InputError(f"there is no setting {name!r}: choose from {', '.join(known)}")
            if value is not None:
                merged[name] = str(value) if isinstance(value, PathLike) else value
        if "source" not in merged:
            raise InputError("no source is given: name one (digits, …), a path, or --config with one in it")
        for name in _PATHS:  # absolute, so that run.toml works from any working directory
            path = Path(merged.get(name) or "").expanduser()
            if merged.get(name) not in (None, *NAMED) and path.exists():
                merged[name] = str(path.absolute())
        if merged.get("cache") not in (None, RAM, DISK, NONE):
            merged["cache"] = str(Path(merged["cache"]).expanduser().absolute())
        return cls(**merged)

    @classmethod
    def from_flags(
        cls, flags: Mapping[str, Any], config: Path | None, out: Path | None, *, resume: bool
    ) -> TrainSettings:
        """Return the settings of a command: those of its flags that are fields, resolved as `resolve` does.

        Args:
            flags: Values by name, all fields among them.
            config: As for `resolve`.
            out: As for `resolve`.
            resume: As for `resolve`.

        Returns:
            The settings.
        """
        values = {name: flags[name] for name in (*(field.name for field in fields(cls)), "strict")}
        return cls.resolve(values, config, out, resume=resume)

    @classmethod
    def resolve(
        cls, values: Mapping[str, Any], config: Path | None, out: Path | None, *, resume: bool
    ) -> TrainSettings:
        """Return the settings of a run.

        Args:
            values: Fields by name; None leaves a field to the file, or to its default.
            config: A TOML file of a run, which the values take precedence over.
            out: The run's folder.
            resume: Without `config`, take the settings of the run that is resumed, so that none need be given again.

        Returns:
            The settings.
        """
        if resume and config is None:
            path = find_file(out or default_out(cls.of(**values)), RUN)
            config = path if path.exists() else None
        return cls.of(config, **values)

    def table(self) -> dict[str, Any]:
        """Return the table [train] of run.toml."""
        return {FILE_NAMES.get(field.name, field.name): getattr(self, field.name) for field in fields(self)}


def current_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values, such as the table [train] of a run.toml, under the names that the fields have today."""
    current = {old: new for new, old in FILE_NAMES.items()}
    return {current.get(name, name): value for name, value in values.items()}


def default_out(settings: TrainSettings) -> Path:
    """Return the folder of a run where none is given."""
    method = "" if settings.method == ADSH.name else f"{settings.method}-"
    return Path(f"{Path(settings.source).stem}-{method}{settings.bits}bits")


def check_method(settings: TrainSettings) -> None:
    """Raise where there is no such method, or it does not use a setting that is given."""
    name = settings.method
    if name == ADSH.name:
        if settings.options:
            raise InputError("--options go with --method: ADSH's values have flags of their own")
        return
    if name not in METHODS:
        raise InputError(f"--method {name}: choose one of {ADSH.name}, {', '.join(METHODS)}")
    unused = _ADSH_ONLY if name in DEEP else (*_ADSH_ONLY, *_NETWORK_ONLY)
    superfluous = [field for field in unused if getattr(settings, field)]
    if settings.unlabelled != "network":
        superfluous.append("unlabelled")
    if name not in DEEP and settings.device not in ("auto", "cpu"):
        superfluous.append("device")
    if name not in DEEP and settings.preset != "modern":
        superfluous.append("preset")
    if superfluous:
        flags = ", ".join(f"--{field.replace('_', '-')}" for field in superfluous)
        raise InputError(f"{name} has no {flags}: leave it out; its own options go into --options NAME=VALUE,…")


def keeps_checkpoints(method: str) -> bool:
    """Return whether a run of this method can be resumed."""
    return method == ADSH.name or method in DEEP


def build_method(settings: TrainSettings, shape: tuple[int, ...]) -> HashModel:
    """Return ADSH, or the method of the settings, to be fitted on items of this shape."""
    shared: dict[str, Any] = {"seed": settings.seed, "progress": False}
    if settings.method == ADSH.name or settings.method in DEEP:
        shared |= {name: getattr(settings, name) for name in ("samples", "outer", "inner", "batch_size", "lr")}
        shared |= {
            "network": settings.network or ("mlp" if len(shape) == 1 else "tiny"),
            "network_options": {"weights": settings.weights} if settings.weights else None,
            "preset": settings.preset,
            "recipe": _recipe_values(settings),
            "device": settings.device,
        }
    if settings.method == ADSH.name:
        kept: dict[str, Any] = {} if settings.keep is None else {"keep": settings.keep}
        return ADSH(settings.bits, gamma=settings.gamma, unlabelled=settings.unlabelled, **kept, **shared)
    model: HashModel = create(settings.method, bits=settings.bits, **(parse_options(settings.options or "") | shared))
    return model


def parse_options(text: str) -> dict[str, Any]:
    """Return `rounds=10,hash_function=ridge` as names and values; what reads as a number becomes one."""
    values: dict[str, Any] = {}
    for option in filter(None, text.split(",")):
        name, equals, value = option.partition("=")
        if not equals or not name.strip().isidentifier():
            raise InputError(f"--options {text}: give NAME=VALUE, several with commas between them")
        values[name.strip()] = _parse_value(value.strip())
    return values


def _recipe_values(settings: TrainSettings) -> dict[str, Any]:
    """Return what the settings change in the preset's recipe."""
    compiled = {} if settings.compile is None else {"compile": COMPILE_MODE if settings.compile else False}
    shards = settings.deterministic_shards
    compiled |= source_values(settings.preset, settings.source)
    return compiled | ({} if shards is None else {"parts": shards})


def _read_table(config: Path) -> dict[str, Any]:
    """Return the table [train] of a TOML file, its values checked against the types of the fields."""
    types = {field.name: str(field.type).split(" ")[0] for field in fields(TrainSettings)}
    table = read_toml(config).get("train")
    if not isinstance(table, dict):
        raise InputError(f"{config} has no table [train]: put the values of the run under it")
    checked = {}
    for name, value in current_names(table).items():
        if name not in types:
            raise InputError(f"{config} sets {name!r}: [train] takes {', '.join(types)}")
        checked[name] = _check_type(value, types[name], f"{config}: {name}")
    return checked


def _check_type(value: Any, expected: str, what: str) -> Any:
    """Return a TOML value that has the type of its field.

    Args:
        value: As the TOML file has it.
        expected: "str", "int", "float" or "bool".
        what: The file and the field, for the error.

    Returns:
        The value, an integer as a float where one is expected.
    """
    accepted: tuple[type, ...] = {"str": (str,), "int": (int,), "float": (int, float), "bool": (bool,)}[expected]
    if not isinstance(value, accepted) or (isinstance(value, bool) and bool not in accepted):
        raise InputError(f"{what} is {value!r}: give {expected}")
    converted: Any = value
    return float(converted) if expected == "float" else converted


def _parse_value(text: str) -> Any:
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text
