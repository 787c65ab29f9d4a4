"""The paper's equations, written out plainly in NumPy: the oracle the fast code is compared with.

Nothing is grouped, nothing is cached, S exists in full. Float64.
"""

from __future__ import annotations

import numpy as np


def similarity(query_labels: np.ndarray, database_labels: np.ndarray) -> np.ndarray:
    """(m, n) of +1/-1 from multi-hot labels: similar where two points share a label."""
    return np.where(query_labels.astype(int) @ database_labels.astype(int).T > 0, 1.0, -1.0)


def weighted(S: np.ndarray) -> np.ndarray:
    """S with its -1 entries replaced by -r, r = (similar pairs) / (dissimilar pairs)."""
    similar, dissimilar = np.sum(S > 0), np.sum(S < 0)
    r = similar / dissimilar if dissimilar else 0.0
    return np.where(S > 0, 1.0, -r)


def objective(U: np.ndarray, V: np.ndarray, S: np.ndarray, omega: np.ndarray | None, gamma: float) -> float:
    """Eq. (4) as its double sum; eq. (3) where omega is None. S is (m, n), already weighted."""
    c = V.shape[1]
    total = 0.0
    for i in range(len(U)):
        for j in range(len(V)):
            total += (U[i] @ V[j] - c * S[i, j]) ** 2
    if omega is not None:
        for i, j in enumerate(omega):
            total += gamma * np.sum((V[j] - U[i]) ** 2)
    return total


def update_codes(
    V: np.ndarray,
    U: np.ndarray,
    S: np.ndarray,
    omega: np.ndarray | None,
    gamma: float,
    *,
    signed: bool = False,
) -> np.ndarray:
    """Eq. (9) for k = 1 .. c, with Q as under eq. (7). Returns the new V."""
    V = V.astype(float).copy()
    (n, c), m = V.shape, len(U)
    U_bar = np.zeros((n, c))
    if omega is not None:
        U_bar[omega] = U
    U_in_Q = np.where(U >= 0, 1.0, -1.0) if signed else U
    Q = -2 * c * S.T @ U_in_Q - 2 * gamma * U_bar
    for k in range(c):
        others = [b for b in range(c) if b != k]
        z = 2 * V[:, others] @ U[:, others].T @ U[:, k] + Q[:, k]
        for j in range(n):
            if abs(z[j]) > 1e-9 * 2 * c * m:
                V[j, k] = -1.0 if z[j] > 0 else 1.0
            elif V[j, k] == 0:
                V[j, k] = 1.0
    return V
