"""The networks F, one file each: F(x) is (batch, c), real-valued, before the tanh.

Inputs come as float32 on the network's device: features (batch, d), or images (batch, channels, H, W) in 0 .. 1.
`traits.py` lists what a network may have beyond `forward`, the user's own `torch.nn.Module` included.
"""

from .registry import NETWORKS, create_network, input_size, takes_center_crop
from .weights import LoadedWeights, load_weights

__all__ = ["NETWORKS", "LoadedWeights", "create_network", "input_size", "load_weights", "takes_center_crop"]
