"""HV as a part of the training loss: does it help to train the members of an ensemble to agree, or to disagree?

    python examples/hv_in_the_loss.py [--seeds 10] [--members 5] [--steps 300]

Five small networks learn to read digits (the data set ships with scikit-learn).  The loss is the mean cross-entropy of
the members plus ``strength`` times the mean HV of the batch: with a positive strength they are pulled together, with a
negative one pushed apart.  ``veridical.discover`` is differentiable, so HV is one line of the loss.

Half of the samples are for training, half for the scores; all strengths start from the same weights in each seed.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import veridical as vd
from veridical import metrics

STRENGTHS = (0.0, 0.1, 1.0, -0.02, -0.1)


def train(
    x: torch.Tensor, y: torch.Tensor, strength: float, options: argparse.Namespace, seed: int
) -> list[torch.Tensor]:
    """Weights of all members, trained together; batches are whole, members differ in their start."""
    generator = torch.Generator().manual_seed(seed)
    shapes = ((options.members, 64, 32), (options.members, 32, 10))
    weights = [(torch.randn(shape, generator=generator) / shape[1] ** 0.5).requires_grad_() for shape in shapes]
    optimiser = torch.optim.Adam(weights, lr=0.01)
    targets = y.expand(options.members, -1)
    for _ in range(options.steps):
        logits = forward(x, weights)
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        if strength:
            hv = vd.discover(torch.softmax(logits, dim=-1), accuracy_preserving=False, max_iter=2).hv
            loss = loss + strength * hv.mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return [weight.detach() for weight in weights]


def forward(x: torch.Tensor, weights: list[torch.Tensor]) -> torch.Tensor:
    """(S, N, L) logits."""
    hidden = torch.relu(torch.einsum("nf,sfh->snh", x, weights[0]))
    return torch.einsum("snh,shl->snl", hidden, weights[1])


def scores(options: argparse.Namespace, seed: int) -> np.ndarray:
    """(strengths, 5): accuracy, log loss and ECE of the mean, accuracy of single members, HV; on held-out samples."""
    digits, labels = load_digits(return_X_y=True)
    x, x_test, y, y_test = train_test_split(digits / 16 - 0.3, labels, test_size=0.5, random_state=seed)
    x, x_test = torch.tensor(x, dtype=torch.float32), torch.tensor(x_test, dtype=torch.float32)
    rows = []
    for strength in STRENGTHS:
        weights = train(x, torch.from_numpy(y), strength, options, seed)
        probs = torch.softmax(forward(x_test, weights), dim=-1)
        mean = probs.mean(dim=0)
        rows.append(
            [
                100 * metrics.accuracy(y_test, mean),
                metrics.nll(y_test, mean),
                100 * metrics.ece(y_test, mean),
                100 * float((probs.argmax(dim=-1) == torch.from_numpy(y_test)).float().mean()),
                float(vd.discover(probs).hv.mean()),
            ]
        )
    return np.array(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--members", type=int, default=5)
    parser.add_argument("--steps", type=int, default=300)
    options = parser.parse_args()
    torch.set_num_threads(1)
    table = np.stack([scores(options, seed) for seed in range(options.seeds)])
    print("strength  accuracy  log loss    ECE   members' accuracy      HV   log loss against strength 0")
    for k, strength in enumerate(STRENGTHS):
        accuracy, loss, ece, single, hv = table[:, k].mean(axis=0)
        line = f"{strength:>8}  {accuracy:7.2f}%  {loss:8.4f}  {ece:4.2f}%  {single:16.2f}%  {hv:6.3f}"
        if strength:
            apart = table[:, k, 1] - table[:, 0, 1]
            error = apart.std(ddof=1) / np.sqrt(len(apart)) if len(apart) > 1 else float("nan")
            line += f"   {apart.mean():+.4f} ± {error:.4f}"
        print(line)


if __name__ == "__main__":
    main()
