"""Training runs in MLflow and Weights & Biases: callbacks for `fit(callback=…)`.

Each writes the values of the recipe at the start, and loss, rows, learning rate and speed after each outer iteration.
"""

from __future__ import annotations

from typing import Any

from ..errors import MissingExtraError
from .callbacks import Callback
from .state import Record

FIGURES = ("loss", "rows", "lr", "items_per_second")  # of a record


class MLflow(Callback):
    """Logs to a run of MLflow: the active one, or one that is started here and ended by `close`.

    Args:
        experiment: The experiment's name; the active one unless given.
        run_name: The name of a run that is started here.
        tracking_uri: Where runs are stored; $MLFLOW_TRACKING_URI unless given.
    """

    def __init__(
        self, experiment: str | None = None, run_name: str | None = None, tracking_uri: str | None = None
    ) -> None:
        try:
            import mlflow
        except ImportError:
            raise MissingExtraError("this callback needs MLflow: pip install mlflow") from None
        self._mlflow: Any = mlflow
        if tracking_uri is not None:
            mlflow.set_tracking_uri(tracking_uri)
        if experiment is not None:
            mlflow.set_experiment(experiment)
        self._run_name, self._own = run_name, False

    def on_start(self, facts: dict[str, Any]) -> None:
        """Log the values of the training run as parameters."""
        if self._mlflow.active_run() is None:
            self._mlflow.start_run(run_name=self._run_name)
            self._own = True
        self._mlflow.log_params(parameters(facts))

    def on_iteration(self, record: Record) -> None:
        """Log one point of each figure."""
        self._mlflow.log_metrics(figures(record), step=int(record["outer"]))

    def close(self) -> None:
        """End the run, where it was started here."""
        if self._own:
            self._mlflow.end_run()
            self._own = False


class WeightsAndBiases(Callback):
    """Logs to a run of Weights & Biases: the active one, or one that is started here and ended by `close`.

    Args:
        **options: Of `wandb.init`, such as project="birds", mode="offline".
    """

    def __init__(self, **options: Any) -> None:
        try:
            import wandb
        except ImportError:
            raise MissingExtraError("this callback needs wandb: pip install wandb") from None
        self._wandb: Any = wandb
        self._options, self._own = options, False

    def on_start(self, facts: dict[str, Any]) -> None:
        """Log the values of the training run as its configuration."""
        if self._wandb.run is None:
            self._wandb.init(**self._options)
            self._own = True
        self._wandb.run.config.update(parameters(facts), allow_val_change=True)

    def on_iteration(self, record: Record) -> None:
        """Log one point of each figure."""
        self._wandb.run.log(figures(record), step=int(record["outer"]), commit=True)

    def close(self) -> None:
        """End the run, where it was started here."""
        if self._own:
            self._wandb.run.finish()
            self._own = False


def parameters(facts: dict[str, Any]) -> dict[str, Any]:
    """Return what is constant in a training run: device, points, bits, and the values of the recipe."""
    recipe = facts["recipe"]
    values = recipe if isinstance(recipe, dict) else recipe.saved()
    return {name: str(facts[name]) for name in ("device", "points", "rows", "bits") if name in facts} | {
        f"recipe.{name}": str(value) for name, value in values.items()
    }


def figures(record: Record) -> dict[str, float]:
    """Return the figures of an outer iteration."""
    return {name: float(record[name]) for name in FIGURES if name in record}
