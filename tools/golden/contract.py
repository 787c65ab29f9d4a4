"""The half that is the same on every machine: names, parameters, flags, values of recipes, routes and their fields."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args, get_type_hints

from .differences import UNKNOWN_DEFAULT
from .internal import command_line, service_app

MODULES = (
    "adsh", "adsh.data", "adsh.evaluate", "adsh.metrics", "adsh.methods", "adsh.networks", "adsh.learn", "adsh.index",
    "adsh.config", "adsh.errors", "adsh.client", "adsh.experiments",
)  # fmt: skip


EARLIER = (
    "adsh.data.sized.Sized", "adsh.learn.objective.Terms", "adsh.experiments.setting.Setting",
)  # fmt: skip  # names that the reference showed and shows under new ones: they must still import
RETIRED = ("start_size", "start_share")  # values of a recipe that no preset used; files that hold them still load
CONFIG_NAMES = ("PRESETS", "Recipe", "recipe")  # what adsh.config documents


def resolve(path: str) -> Any:
    """What `adsh.metrics` or `adsh.learn.CodeTable` names."""
    root, *parts = path.split(".")
    found = import_module(root)
    for number, part in enumerate(parts):
        try:
            found = getattr(found, part)
        except AttributeError:
            found = import_module(".".join([root, *parts[: number + 1]]))
    return found


def names_of(module: str) -> list[str]:
    """Its `__all__` or, where it has none, what is defined there and not hidden: classes, functions, CONSTANTS."""
    found = resolve(module)
    if module == "adsh.config":
        return list(CONFIG_NAMES)
    if hasattr(found, "__all__"):
        return sorted(found.__all__)
    return sorted(name for name, value in vars(found).items() if _is_own(found, name, value))


def _is_own(module: Any, name: str, value: Any) -> bool:
    if name.startswith("_"):
        return False
    if inspect.isclass(value) or inspect.isfunction(value):
        return bool(value.__module__ == module.__name__)
    return name.isupper()


def described(modules: dict[str, list[str]]) -> dict[str, Any]:
    """Every name: a class with its methods and their parameters, a function with its, or a value."""
    return {
        module: {name: _described(value) for name, value in _found(module, names)} for module, names in modules.items()
    }


def _found(module: str, names: list[str]) -> Iterator[tuple[str, Any]]:
    for name in names:
        try:
            yield name, resolve(f"{module}.{name}")
        except (AttributeError, ImportError):
            continue


def _described(value: Any) -> Any:
    if inspect.isclass(value):
        return "values: see recipes" if value.__name__ == "Recipe" else of_class(value)
    if inspect.ismodule(value):
        return "a module"
    if callable(value):
        return parameters(value)
    if isinstance(value, tuple | list):
        return [repr(one) for one in value]
    return sorted(map(str, value)) if isinstance(value, dict | frozenset | set) else repr(value)


def of_class(cls: type) -> dict[str, Any]:
    """What its instances are made with, what they can do, and what may be caught them as."""
    summary: dict[str, Any] = {"made with": parameters(cls)}
    for name in sorted(dir(cls)):
        if name.startswith("_") and name not in ("__len__", "__getitem__", "__contains__", "__enter__", "__iter__"):
            continue
        owner = next((base for base in cls.__mro__ if name in vars(base)), cls)
        if owner.__module__.partition(".")[0] != "adsh":
            continue
        value = inspect.getattr_static(cls, name)
        if isinstance(value, classmethod | staticmethod):
            value = value.__func__
        summary[name] = parameters(value) if inspect.isfunction(value) else "an attribute"
    if issubclass(cls, BaseException):
        summary["is a"] = {base.__name__: "" for base in cls.__mro__}
    return summary


def parameters(function: Any) -> dict[str, Any]:
    """Return each parameter with its default, and the positional ones in order.

    The names that `**options: Unpack[Options]` takes count as parameters, as they did when they were written out; their
    defaults are not in the signature.
    """
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return {}
    positional = [one.name for one in found if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    listed: dict[str, Any] = {one.name: _default(one) for one in found}
    taker = function.__init__ if inspect.isclass(function) else function
    for earlier, name in getattr(taker, "earlier_names", {}).items():  # of utils.earlier_names
        listed[earlier] = listed[name]
        positional = [earlier if one == name else one for one in positional]
    return {**listed, **dict.fromkeys(_unpacked(function), UNKNOWN_DEFAULT), "(in order)": positional}


def _unpacked(function: Any) -> list[str]:
    """Return the names of the options that a function takes by `Unpack` of a TypedDict, or passes on to its base."""
    function = inspect.unwrap(function)
    cls, function = (function, function.__init__) if inspect.isclass(function) else (None, function)
    for one in inspect.signature(function).parameters.values():
        if one.kind is not one.VAR_KEYWORD:
            continue
        if "Unpack" in str(one.annotation):
            hint = eval(one.annotation, function.__globals__)  # a string, as annotations are not evaluated
            return list(get_type_hints(get_args(hint)[0]))
        if cls is not None and one.name == "shared":  # the options that all methods of one kind share
            return [name for name in parameters(cls.__mro__[1]) if name != "(in order)"]
    return []


def _default(one: inspect.Parameter) -> str:
    if one.kind in (one.VAR_KEYWORD, one.VAR_POSITIONAL):
        return "any"
    return "needed" if one.default is one.empty else re.sub(r" at 0x[0-9a-f]+", "", repr(one.default))


def methods(names: dict[str, list[str]] | None = None) -> dict[str, Any]:
    """Each method of adsh.methods: the options that it takes and keeps under these names, and what it can do."""
    import adsh

    summary = {}
    for name in adsh.methods.METHODS:
        model = adsh.methods.create(name, bits=8)
        options = [key for key in vars(model) if not key.startswith("_")] if names is None else names.get(name, [])
        kept = {key: repr(getattr(model, key)) for key in options if hasattr(model, key)}
        given = {key: getattr(model, key) for key in kept}
        taken = {
            key: "" for key in kept if key == "bits" or _takes(partial(adsh.methods.create, name, bits=8), key, given)
        }
        summary[name] = {"options": kept, "takes": taken, "class": of_class(type(model))}
    return summary


def _takes(make: Callable[..., Any], name: str, values: dict[str, Any]) -> bool:
    """Whether this may be given by name, in the spelling of the record."""
    try:
        make(**{name: values[name]})
    except (TypeError, ValueError):
        return False
    return True


def documented(root: Path) -> dict[str, str]:
    """The last part of every name that the reference pages show: the modules before it may move."""
    summary = {}
    for page in sorted((root / "docs/reference").rglob("*.md")):
        for path in re.findall(r"^::: (\S+)", page.read_text(encoding="utf-8"), re.MULTILINE):
            _shown(path)
            summary[path.rpartition(".")[2]] = "shown"
    for path in EARLIER:
        with suppress(ImportError, AttributeError), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the old path of a module
            _shown(path)
            summary[path.rpartition(".")[2]] = "shown"
    return summary


def _shown(path: str) -> Any:
    """What a page means: a module before a name of the same spelling."""
    try:
        return import_module(path)
    except ImportError:
        module, _, name = path.rpartition(".")
        return getattr(_shown(module), name)


def commands(command: Any = None) -> dict[str, Any]:
    """Every command with its flags and arguments, their defaults and whether they are needed."""
    command = command_line() if command is None else command
    summary: dict[str, Any] = {"parameters": {}, "commands": {}}
    for one in command.params:
        default = one.default if isinstance(one.default, str | int | float | bool | None) else str(one.default)
        about = {"default": default, "many": bool(one.multiple or one.nargs != 1)}
        about |= {} if one.required else {"may be left out": ""}
        flags = (*one.opts, *one.secondary_opts) if one.param_type_name == "option" else (one.metavar or one.name,)
        # by each flag: an older spelling may be kept next to a newer one
        summary["parameters"] |= dict.fromkeys(flags, about)
    for name, inner in getattr(command, "commands", {}).items():
        summary["commands"][name] = commands(inner)
    return summary


def recipes(names: list[str] | None = None) -> dict[str, Any]:
    """Every value of a recipe with its default, whether it is taken by that name, and each preset for each network."""
    from adsh.config import PRESETS, Recipe, recipe
    from adsh.networks import NETWORKS

    names = [one.name for one in fields(Recipe) if one.name not in RETIRED] if names is None else names
    plain = Recipe()
    defaults = {name: getattr(plain, name) for name in names if hasattr(plain, name)}
    taken = {name: "" for name in defaults if _takes(Recipe, name, defaults)}
    ways = {name: "" for name in defaults if _takes(partial(recipe, "paper", "mlp"), name, defaults)}
    summary: dict[str, Any] = {"defaults": defaults, "taken": taken, "taken over a preset": ways, "presets": {}}
    for preset in PRESETS:
        for network in (*NETWORKS, "frozen:efficientnet_lite0"):
            for several in (False, True):
                for method in ("adsh", "classifier", "dpsh"):
                    created = recipe(preset, network, multi_label=several, method=method)
                    own = {name: getattr(created, name) for name in sorted(defaults)}
                    said = [f"{name}={value}" for name, value in own.items() if value != defaults[name]]
                    named = f"{preset}, {network}, {'several labels' if several else 'one'}, {method}"
                    summary["presets"][named] = ", ".join(said)
    return summary


def service() -> dict[str, Any]:
    """Every route with its parameters, bodies and answers, and every field of what goes in and out."""
    with TemporaryDirectory() as folder:
        app = service_app(Path(folder))
        api = app.openapi()
    routes: dict[str, Any] = {}
    for path, ways in api["paths"].items():
        for way, about in ways.items():
            given = {one["name"]: [one["in"], one.get("required", False)] for one in about.get("parameters", [])}
            bodies = {kind: _schema(of) for kind, of in about.get("requestBody", {}).get("content", {}).items()}
            answers = {
                status: {kind: _schema(of) for kind, of in answer.get("content", {}).items()}
                for status, answer in about.get("responses", {}).items()
            }
            routes[f"{way.upper()} {path}"] = {"parameters": given, "bodies": bodies, "answers": answers}
    schemas = {name: _schema(of) for name, of in api.get("components", {}).get("schemas", {}).items()}
    mounted = {str(getattr(route, "path", "")): "" for route in app.routes}
    return {"routes": routes, "schemas": schemas, "all paths": mounted}


def _schema(value: Any) -> Any:
    """A schema without what is for people."""
    if isinstance(value, dict):
        return {
            name: _schema(of)
            for name, of in value.items()
            if not (name in ("title", "description", "example", "examples") and not isinstance(of, dict))
        }
    return [_schema(one) for one in value] if isinstance(value, list) else value


def collect(root: Path, names: dict[str, list[str]] | None = None) -> dict[str, Any]:
    """The whole contract; `names` are those to look for, by default those that are public now."""
    names = {module: names_of(module) for module in MODULES} if names is None else names
    return {
        "names": described(names),
        "methods": methods(),
        "documented": documented(root),
        "commands": commands(),
        "recipes": recipes(),
        "service": service(),
    }
