"""Learn Theta with V fixed: one mini-batch forward and back, at the schedule's learning rate."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
from torch import Tensor, nn

from ..config import CUDA_GRAPH, Recipe
from ..errors import AdshWarning, first_line
from ..networks.class_lookup import split_scores
from ..networks.traits import traits_of
from .cuda_graph import CapturedNetwork, can_be_captured
from .deterministic import ShardedBatch
from .distributed import ProcessGroup
from .optimizer import LR_FACTOR, WeightAverage, build_optimizer, learning_rate
from .state import Activation

LossGradient = Callable[[Tensor], Tensor]  # the gradient of a loss by the outputs (b, c), at these outputs


class Step:
    """Forward, the loss's gradient, backward. Where the recipe says so: bf16, a compiled network, averaged weights.

    Args:
        network: trained in place.
        recipe: the values of the run.
        batches: mini-batches in an epoch.
        device: where to compute.
        activation: what makes outputs of F(x).
        group: the processes that share every mini-batch.
    """

    def __init__(
        self,
        network: nn.Module,
        recipe: Recipe,
        batches: int,
        device: torch.device,
        activation: Activation = torch.tanh,
        group: ProcessGroup = ProcessGroup(),  # noqa: B008  # frozen
    ) -> None:
        self.network, self.recipe, self.batches, self.device = network, recipe, batches, device
        self.activation, self.group = activation, group
        self.bf16 = recipe.bf16 and device.type == "cuda"
        if device.type == "cuda":
            network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # a stub that leaves it out
        self.optimizer = build_optimizer(network, recipe)
        self._average = WeightAverage(network, recipe.ema_decay) if recipe.ema_decay else None
        self.taken = 0  # steps
        self.rate_used = 0.0
        self._sharded = ShardedBatch(network, activation, group) if group.shards > 1 else None
        self._forward: Callable[[Tensor], Tensor] = network
        self._usual_size = 0  # of the batches that a compiled or captured network takes
        # neither works with messages between processes, or with the copies of the network that shards have
        mode = recipe.compile if device.type == "cuda" and group.is_single and self._sharded is None else False
        self._captures = mode == CUDA_GRAPH and can_be_captured(network, device)
        if mode and mode != CUDA_GRAPH:
            self._forward = _compile(network, mode if isinstance(mode, str) else None)

    @property
    def average(self) -> nn.Module | None:
        """The network with averaged weights, where the recipe asks for them."""
        return None if self._average is None else self._average.network

    @property
    def rate(self) -> float:
        """The learning rate of the next step."""
        return learning_rate(self.recipe, self.taken, self.batches)

    def resume(self, iterations: int) -> None:
        """Go on after so many outer iterations."""
        self.taken = iterations * self.recipe.inner * self.batches

    def start_iteration(self) -> None:
        """Prepare for an outer iteration."""
        if self._sharded is not None:
            self._sharded.renew()

    def warm_up(self, inputs: Tensor, size: int) -> None:
        """Compile or capture on a GPU for mini-batches of `size`, and let cuDNN choose; weights stay as they are.

        The first call is for the usual size. Batches of other sizes are neither compiled nor captured.
        """
        self._usual_size = self._usual_size or len(inputs)
        self.network.train()
        before = {name: tensor.clone() for name, tensor in self.network.state_dict().items()}
        while True:
            try:
                self._try_passes(inputs, size)
                break
            except Exception as problem:
                plain, out_of_memory = self._forward is self.network, isinstance(problem, torch.OutOfMemoryError)
                if not self._captures and (plain or out_of_memory):
                    raise
                what = "CUDA graphs do" if self._captures else "torch.compile does"
                warnings.warn(f"{what} not work here ({first_line(problem)}): steps take longer", AdshWarning, 3)
            self._use_plain_network()
        self.network.load_state_dict(before)
        torch.cuda.synchronize(self.device)

    def _try_passes(self, inputs: Tensor, size: int) -> None:
        if self._captures and self._forward is self.network:
            self._forward = CapturedNetwork(self.network, self._to_layout(inputs), bf16=self.bf16)
        for _ in range(3):  # compiled, captured, replayed
            self.optimizer.zero_grad(set_to_none=True)
            self._outputs(inputs, size).sum().backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        self.optimizer.zero_grad(set_to_none=True)

    def _use_plain_network(self) -> None:
        """From here on the network is neither compiled nor captured."""
        if isinstance(self._forward, CapturedNetwork):
            self._forward.close()
            torch.cuda.empty_cache()
        self._forward, self._captures = self.network, False
        self.optimizer.zero_grad(set_to_none=True)

    def _to_layout(self, inputs: Tensor) -> Tensor:
        """Return images in the memory layout that convolutions on a GPU prefer."""
        if self.device.type == "cuda" and inputs.ndim == 4:
            return inputs.contiguous(memory_format=torch.channels_last)
        return inputs

    def _outputs(self, inputs: Tensor, size: int) -> Tensor:
        """(b, c) outputs of this process's rows of a mini-batch of `size`."""
        inputs = self._to_layout(inputs)
        autocast = torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.bf16)
        with autocast, self.group.batch_sync(size):
            # a batch of another size, the last of an epoch, would be compiled anew, and cannot be replayed
            outputs = (self._forward if len(inputs) == self._usual_size else self.network)(inputs)
        return self.activation(outputs.float())

    def __call__(self, inputs: Tensor, gradient: LossGradient, size: int | None = None) -> Tensor:
        """Take one step.

        Args:
            inputs: this process's rows of the mini-batch.
            gradient: the loss's gradient by the outputs; called once.
            size: rows of the whole mini-batch, where several processes share it.

        Returns:
            The outputs of the whole mini-batch, as they were before the step.
        """
        size = len(inputs) if size is None else size
        self.rate_used = self.rate
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate_used * group.get(LR_FACTOR, 1.0)
        compute = self._forward_and_back if self._sharded is None else self._sharded
        outputs = compute(inputs, gradient, size)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)  # now, so that a replayed graph may use their memory again
        self.taken += 1
        if self._average is not None:
            self._average.update(self.taken)
        return outputs

    def _forward_and_back(self, inputs: Tensor, gradient: LossGradient, size: int) -> Tensor:
        """Return the outputs of all processes; leave the weights' gradients."""
        own = self._outputs(inputs, size)
        outputs = self.group.gather(own.detach(), size)
        own.backward(gradient(outputs)[self.group.share(size)])  # type: ignore[no-untyped-call]  # torch leaves it untyped
        self.group.sum_gradients(self.network.parameters())
        return outputs

    def close(self) -> None:
        """End the threads of the shards, and free the memory of a captured graph."""
        if self._sharded is not None:
            self._sharded.close()
        self._use_plain_network()

    @torch.no_grad()
    def finish(self) -> None:
        """Put the averaged weights into the network."""
        if self._average is not None:
            self.network.load_state_dict(self._average.network.state_dict())


def _compile(network: nn.Module, mode: str | None) -> Callable[[Tensor], Tensor]:
    """Compile the network; of a backbone only the features, so that codes of any length share the compilation."""
    network, _ = split_scores(network)
    backbone = traits_of(network).backbone
    if backbone is None:  # a user's own may have members of these names
        compiled: Callable[[Tensor], Tensor] = torch.compile(network, mode=mode)
        return compiled
    head = backbone.head
    body: Callable[[Tensor], Tensor] = torch.compile(backbone.features, mode=mode)

    def forward(inputs: Tensor) -> Tensor:
        out: Tensor = head(body(inputs))
        return out

    return forward
