"""Threads, forks and other people's pools."""

import multiprocessing
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from ensembles import random_ensemble
from threadpoolctl import threadpool_info, threadpool_limits

import veridical as vd
from veridical._parallel import resolve_threads, run_blocks, single_threaded_blas
from veridical.errors import ParameterError

pytestmark = pytest.mark.compiled


@pytest.fixture
def probs(rng):
    return random_ensemble(rng, 4, 3000, 5, np.float32)


def assert_equal(truth, expected):
    np.testing.assert_array_equal(truth.probs, expected.probs)
    np.testing.assert_array_equal(truth.hv, expected.hv)
    np.testing.assert_array_equal(truth.reliability, expected.reliability)


@pytest.mark.parametrize("n_threads", [1, 2, 3, 8])
def test_same_bytes_whatever_the_number(probs, n_threads):
    assert_equal(vd.discover(probs, n_threads=n_threads), vd.discover(probs, n_threads=1))


def test_several_python_threads_at_once(probs):
    expected = vd.discover(probs, n_threads=1)
    with ThreadPoolExecutor(6) as pool:
        for truth in pool.map(lambda _: vd.discover(probs, n_threads=2), range(24)):
            assert_equal(truth, expected)


def _blas_threads(_=None):
    return max(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")


def test_blas_has_one_thread_within_blocks():
    with threadpool_limits(2, "blas"):
        assert run_blocks(_blas_threads, range(4), n_threads=2) == [1] * 4
        assert _blas_threads() == 2


def test_blas_threads_are_restored_when_callers_overlap():
    """The main thread sets the limit, and is the first to leave."""
    is_inside, may_leave = threading.Event(), threading.Event()

    def work(_):
        is_inside.set()
        assert may_leave.wait(60)
        return _blas_threads()

    with threadpool_limits(2, "blas"), ThreadPoolExecutor(1) as other:
        with single_threaded_blas():
            result = other.submit(run_blocks, work, range(2), 2)
            assert is_inside.wait(60)
        may_leave.set()
        assert result.result() == [1, 1]
        run_blocks(len, [(), ()], n_threads=2)  # OpenBLAS may listen to the main thread only
        assert _blas_threads() == 2


def _in_child(probs, queue):
    queue.put(vd.discover(probs, n_threads=2).probs)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*fork.*JAX:RuntimeWarning")  # other tests of this process may have imported JAX
def test_after_fork(probs):
    expected = vd.discover(probs, n_threads=2)  # the parent's pool exists by now
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(probs, queue))
    child.start()
    np.testing.assert_array_equal(queue.get(timeout=60), expected.probs)
    child.join(timeout=60)
    assert child.exitcode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="a local cluster needs a main guard there")
@pytest.mark.filterwarnings("ignore")
def test_inside_dask_workers(probs):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        halves = [probs[:, :1500], probs[:, 1500:]]
        truths = client.gather([client.submit(vd.discover, half) for half in halves])
    np.testing.assert_array_equal(np.concatenate([t.probs for t in truths]), vd.discover(probs).probs)


def test_work_inside_a_block_stays_in_its_thread():
    assert run_blocks(lambda _: sum(run_blocks(lambda i: i, range(4), 2)), range(8), 2) == [6] * 8


def test_number_of_threads_from_the_environment(monkeypatch):
    monkeypatch.setenv("VERIDICAL_NUM_THREADS", "3")
    assert resolve_threads(None) == 3
    assert resolve_threads(2) == 2
    monkeypatch.setenv("VERIDICAL_NUM_THREADS", "many")
    with pytest.raises(ParameterError, match="VERIDICAL_NUM_THREADS is 'many'"):
        resolve_threads(None)
    monkeypatch.delenv("VERIDICAL_NUM_THREADS")
    assert resolve_threads(None) >= 1
