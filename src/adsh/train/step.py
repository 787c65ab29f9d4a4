"""Learn Theta with all else fixed: one mini-batch forward and back, at the schedule's rate."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable

import torch
from torch import Tensor, nn

from ..config import RECORDED, Recipe
from ..errors import AdshWarning, InputError, first_line
from ..networks.backbone import Backbone
from ..networks.class_lookup import split_scores
from .cuda_graph import Recorded, can_be_recorded
from .deterministic import Parts
from .distributed import World

Activation = Callable[[Tensor], Tensor]  # what makes outputs of F(x)
Slope = Callable[[Tensor], Tensor]  # the gradient of a loss by the outputs (b, c), at these outputs


class Step:
    """Forward, the loss's slope, backward. Where the recipe says so: bf16, a compiled network, averaged weights."""

    def __init__(
        self,
        network: nn.Module,
        recipe: Recipe,
        batches: int,
        device: torch.device,
        activation: Activation = torch.tanh,
        world: World = World(),  # noqa: B008  # frozen
    ) -> None:
        self.network, self.recipe, self.batches, self.device = network, recipe, batches, device
        self.activation, self.world = activation, world
        self.bf16 = recipe.bf16 and device.type == "cuda"
        if device.type == "cuda":
            network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # a stub that leaves it out
        self.optimizer = _optimizer(network, recipe, fused=device.type == "cuda")
        self.average = copy.deepcopy(network).eval().requires_grad_(False) if recipe.ema else None
        self._held: tuple[tuple[list[Tensor], list[Tensor]], ...] | None = None
        self.taken = 0
        self.rate_used = 0.0
        self._sizes = _Sizes(network, recipe)
        self._parts = Parts(network, activation, world) if world.parts > 1 else None
        self._forward: Callable[[Tensor], Tensor] = network
        self._usual = 0  # how many images a compiled or recorded network takes
        # no messages from inside a graph; and parts have networks of their own
        faster = recipe.compile if device.type == "cuda" and world.alone and self._parts is None else False
        self._records = faster == RECORDED and not recipe.start_size and can_be_recorded(network, device)
        if faster and faster != RECORDED:
            self._forward = _compiled(network, faster if isinstance(faster, str) else None)

    @property
    def rate(self) -> float:
        """The learning rate of the next step."""
        recipe, taken = self.recipe, self.taken
        epochs = recipe.outer * recipe.inner
        total = epochs * self.batches
        rate = recipe.lr
        if recipe.schedule == "tenth":
            rate *= 0.1 ** (taken // (self.batches * recipe.inner) // 10)
        elif recipe.schedule == "log":
            done = min(taken // self.batches, epochs - 1) / max(epochs - 1, 1)
            rate *= (recipe.lr_end / recipe.lr) ** done
        elif recipe.schedule == "cosine":
            rate = recipe.lr_end + (rate - recipe.lr_end) * (1 + math.cos(math.pi * min(taken / total, 1))) / 2
        warm = recipe.warmup * total
        return rate * min(1.0, (taken + 1) / warm) if warm else rate

    def outer(self, w: int) -> None:
        """Before outer iteration w."""
        self._sizes.at(w)
        if self._parts is not None:
            self._parts.renew()

    def prepare(self, inputs: Tensor, first: int, count: int) -> None:
        """On a GPU, before outer iteration `first`: compiles or records for batches of this size, and has cuDNN choose.

        The first batch given is of the usual size; later ones, of others, get neither. None leaves a trace.
        """
        self._usual = self._usual or len(inputs)
        self.network.train()
        before = {name: tensor.clone() for name, tensor in self.network.state_dict().items()}
        while True:
            try:
                self._try_out(inputs, first, count)
                break
            except Exception as problem:
                as_it_is, full = self._forward is self.network, isinstance(problem, torch.OutOfMemoryError)
                if not self._records and (as_it_is or full):
                    raise
                what = "CUDA graphs do" if self._records else "torch.compile does"
                warnings.warn(f"{what} not work here ({first_line(problem)}): steps take longer", AdshWarning, 3)
            self._as_it_is()
        self.network.load_state_dict(before)
        torch.cuda.synchronize(self.device)

    def _try_out(self, inputs: Tensor, first: int, count: int) -> None:
        """A few passes at every size to come."""
        if self._records and self._forward is self.network:
            self._forward = Recorded(self.network, self._placed(inputs), bf16=self.bf16)
        for w in sorted({first, self.recipe.outer - 1}):
            self._sizes.at(w)
            for _ in range(3):  # compiled, recorded, replayed
                self.optimizer.zero_grad(set_to_none=True)
                self._outputs(inputs, count).sum().backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        self.optimizer.zero_grad(set_to_none=True)

    def _as_it_is(self) -> None:
        """From here on the network is neither compiled nor recorded."""
        if isinstance(self._forward, Recorded):
            self._forward.close()
            torch.cuda.empty_cache()
        self._forward, self._records = self.network, False
        self.optimizer.zero_grad(set_to_none=True)

    def _placed(self, inputs: Tensor) -> Tensor:
        """In the order of memory that convolutions on a GPU want."""
        if self.device.type == "cuda" and inputs.ndim == 4:
            return inputs.contiguous(memory_format=torch.channels_last)
        return inputs

    def _outputs(self, inputs: Tensor, count: int) -> Tensor:
        """(b, c) U of this process's rows of a mini-batch of `count`."""
        inputs = self._placed(inputs)
        autocast = torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.bf16)
        with autocast, self.world.whole_batch(count):
            # another size of batch, the last of an epoch, would be compiled anew, and cannot be replayed
            outputs = (self._forward if len(inputs) == self._usual else self.network)(inputs)
        return self.activation(outputs.float())

    def __call__(self, inputs: Tensor, slope: Slope, count: int | None = None) -> Tensor:
        """One mini-batch; its outputs as they were before the step. `slope` is asked once.

        Where several processes share it, it has `count` rows, `inputs` are this one's, and the outputs those of all.
        """
        count = len(inputs) if count is None else count
        self.rate_used = self.rate
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate_used * group.get("times", 1.0)
        u = self._learned(inputs, slope, count) if self._parts is None else self._parts(inputs, slope, count)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)  # now, so that a replayed graph may use their memory again
        self.taken += 1
        if self.average is not None:
            self._average(self.average)
        return u

    def _learned(self, inputs: Tensor, slope: Slope, count: int) -> Tensor:
        """The outputs of all; leaves the gradients at the weights."""
        part = self._outputs(inputs, count)
        u = self.world.gather(part.detach(), count)
        part.backward(slope(u)[self.world.share(count)])  # type: ignore[no-untyped-call]  # torch leaves it untyped
        self.world.add_gradients(self.network.parameters())
        return u

    @torch.no_grad()
    def _average(self, average: nn.Module) -> None:
        """Moves the averaged weights and statistics towards the present ones; faster at first, when they are far."""
        keep = min(self.recipe.ema, (1 + self.taken) / (10 + self.taken))
        if self._held is None:
            self._held = _held(average), _held(self.network)
        (means, mean_counts), (values, counts) = self._held
        torch._foreach_lerp_(means, values, 1 - keep)
        if counts:
            torch._foreach_copy_(mean_counts, counts)

    def close(self) -> None:
        """Ends the threads of its parts, and gives the memory of a recording back."""
        if self._parts is not None:
            self._parts.close()
        self._as_it_is()

    @torch.no_grad()
    def finish(self) -> None:
        """Leaves the averaged weights in the network."""
        self._sizes.at(self.recipe.outer)
        if self.average is not None:
            self.network.load_state_dict(self.average.state_dict())


def _held(network: nn.Module) -> tuple[list[Tensor], list[Tensor]]:
    """The tensors of a network, in one order: real numbers, and whole ones, the counts of batch norm."""
    tensors = list(network.state_dict().values())
    return [t for t in tensors if t.is_floating_point()], [t for t in tensors if not t.is_floating_point()]


class _Sizes:
    """The side of the images that the network works on: smaller in the first outer iterations, then its own."""

    def __init__(self, network: nn.Module, recipe: Recipe) -> None:
        preprocess = getattr(network, "preprocess", None)
        self._resizes = preprocess if isinstance(getattr(preprocess, "size", None), int) else None
        self._own: int = getattr(self._resizes, "size", 0)
        self._start = recipe.start_size
        self._until = recipe.start_share * recipe.outer if recipe.start_size else 0

    def at(self, w: int) -> None:
        """Sets that of outer iteration w."""
        if self._resizes is not None:
            self._resizes.size = self._start if w < self._until else self._own


def _compiled(network: nn.Module, mode: str | None) -> Callable[[Tensor], Tensor]:
    """The network compiled; where it tells its features from its last layer, only these, for codes of any length."""
    network, _ = split_scores(network)
    if not isinstance(network, Backbone):  # a user's own may have parts of these names
        compiled: Callable[[Tensor], Tensor] = torch.compile(network, mode=mode)
        return compiled
    head = network.head
    body: Callable[[Tensor], Tensor] = torch.compile(network.features, mode=mode)

    def forward(inputs: Tensor) -> Tensor:
        out: Tensor = head(body(inputs))
        return out

    return forward


def _optimizer(network: nn.Module, recipe: Recipe, *, fused: bool) -> torch.optim.Optimizer:
    parameters = [p for p in network.parameters() if p.requires_grad]
    if not parameters:
        raise InputError("the network has no parameters to train: unfreeze its last layer at least")
    head = getattr(network, "head", None)
    last = {id(p) for p in head.parameters()} if isinstance(head, nn.Module) else set()
    kinds: dict[tuple[float, float], list[nn.Parameter]] = {}
    for p in parameters:
        decay = 0.0 if recipe.optimizer == "adamw" and p.ndim <= 1 else recipe.weight_decay  # none for biases and norms
        kinds.setdefault((recipe.head_lr if id(p) in last else 1.0, decay), []).append(p)
    groups = [{"params": some, "times": times, "weight_decay": decay} for (times, decay), some in kinds.items()]
    if recipe.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=recipe.lr)
    return torch.optim.AdamW(groups, lr=recipe.lr, fused=fused)
