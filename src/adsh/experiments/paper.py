"""The results printed in the paper, by data set and method, at 12, 24, 32 and 48 bits."""

from __future__ import annotations

BITS = (12, 24, 32, 48)

Row = tuple[float, float, float, float]

MAP: dict[str, dict[str, Row]] = {  # Tables 1 and 2: CNN-F, or features of it
    "cifar10": {
        "itq": (0.2611, 0.2734, 0.2865, 0.2957),
        "lin_lin": (0.6173, 0.6329, 0.6166, 0.5918),
        "fasth": (0.6111, 0.6713, 0.6874, 0.7065),
        "lfh": (0.4342, 0.5988, 0.6551, 0.6745),
        "sdh": (0.4866, 0.6328, 0.6457, 0.6539),
        "cosdish": (0.6048, 0.6684, 0.6871, 0.7068),
        "dsh": (0.6370, 0.7493, 0.7803, 0.8086),
        "dhn": (0.6794, 0.7201, 0.7309, 0.7408),
        "dpsh": (0.6863, 0.7276, 0.7406, 0.7520),
        "lin_v": (0.8197, 0.8011, 0.8055, 0.8021),
        "lfh_d": (0.4743, 0.6384, 0.7598, 0.8142),
        "sdh_d": (0.7115, 0.8297, 0.8314, 0.8336),
        "cosdish_d": (0.8431, 0.8666, 0.8738, 0.8724),
        "adsh": (0.8466, 0.9062, 0.9175, 0.9263),
    },
    "nuswide": {
        "itq": (0.6785, 0.7020, 0.7104, 0.7204),
        "lin_lin": (0.6464, 0.6446, 0.6278, 0.6295),
        "fasth": (0.7506, 0.7785, 0.7853, 0.7993),
        "lfh": (0.7362, 0.7760, 0.7896, 0.8020),
        "sdh": (0.7550, 0.7723, 0.7727, 0.7830),
        "cosdish": (0.7418, 0.7738, 0.7895, 0.7986),
        "dsh": (0.7650, 0.7778, 0.7822, 0.7844),
        "dhn": (0.7598, 0.7894, 0.7960, 0.8021),
        "dpsh": (0.7895, 0.8083, 0.8138, 0.8216),
        "lin_v": (0.7762, 0.7756, 0.7806, 0.7820),
        "lfh_d": (0.7954, 0.8393, 0.8584, 0.8721),
        "sdh_d": (0.8478, 0.8683, 0.8647, 0.8670),
        "cosdish_d": (0.8031, 0.8448, 0.8581, 0.8670),
        "adsh": (0.8570, 0.8939, 0.9008, 0.9074),
    },
}

NETWORKS: dict[tuple[str, str], Row] = {  # appendix C, CIFAR-10: (method, network)
    ("dhn", "alexnet"): (0.5512, 0.6091, 0.6114, 0.6433),
    ("dhn", "common"): (0.5978, 0.6399, 0.6471, 0.6870),
    ("dsh", "dsh_net"): (0.6157, 0.6512, 0.6607, 0.6755),
    ("dsh", "common"): (0.6036, 0.6829, 0.7245, 0.7657),
}


def paper_map(dataset: str, method: str, bits: int) -> float | None:
    """Return the MAP printed in the paper.

    Args:
        dataset: The data set.
        method: The method.
        bits: The code length.

    Returns:
        MAP, or None if the paper has no such result.
    """
    row = MAP.get(dataset, {}).get(method)
    return row[BITS.index(bits)] if row and bits in BITS else None
