"""Small pieces of the shipped ensemble, as objects and as files."""

import numpy as np

import veridical as vd
from veridical.paper import Ensemble, EnsembleName

AUTHORS_NAME = "logits_CIFAR10-PreResNet110-deepens-100-1.pkl.npy"


def small_predictions(n_sources=4, n_samples=400):
    return vd.load_demo().select(sources=slice(n_sources), samples=slice(n_samples))


def small_ensemble(n_sources=4, n_samples=400, name="small"):
    return Ensemble(EnsembleName(name), small_predictions(n_sources, n_samples))


def write_npz(path, n_sources=4, n_samples=400):
    small = small_predictions(n_sources, n_samples)
    np.savez(path, logits=small.values, labels=small.labels)
    return path


def write_as_the_authors(folder, n_sources=10, n_samples=400):
    """A file of bare logits under a name like the authors', and its labels apart."""
    small = small_predictions(n_sources, n_samples)
    path, labels = folder / AUTHORS_NAME, folder / "labels.npy"
    np.save(path, small.values.astype(np.float32))
    np.save(labels, small.labels)
    return path, labels
