"""Dask arrays and clusters: lazy, equal to local results, and clear where workers die."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import dask
import dask.array as da
import distributed
import numpy as np
import pytest
import zarr
from blocked_ensembles import BLOCK_MEMORY, labelled_ensemble
from distributed.comm import tcp
from programs import veridical

import veridical as vd
from veridical import errors, scale
from veridical._parallel import resolve_threads

pytestmark = pytest.mark.compiled

FIELDS = ("probs", "reliability", "hv", "prediction", "n_iter", "converged")
CHUNKS = (5, 500, 4)


@contextlib.contextmanager
def cluster_of(n_workers=2, **options):
    """A client of worker processes with one thread each."""
    settings = {"distributed.scheduler.allowed-failures": options.pop("allowed_failures", 3)}
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            silence_logs=60,
            **options,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def client():
    with cluster_of(memory_limit="4GiB") as client:
        yield client


@pytest.fixture(scope="module")
def store(tmp_path_factory, blocked_ensemble):
    """The ensemble as a Zarr store with chunks of 500 samples."""
    probs, labels = blocked_ensemble
    path = tmp_path_factory.mktemp("store") / "probs.zarr"
    group = zarr.open_group(str(path), mode="w")
    group.create_array("probs", shape=probs.shape, chunks=CHUNKS, dtype="float32")[...] = probs
    group.create_array("labels", shape=labels.shape, chunks=(3000,), dtype="int64")[...] = labels
    return path


@pytest.fixture
def opened(store):
    return scale.open(store, block_memory=4 * 4 * np.prod(CHUNKS).item())


class TestLazyArrays:
    def test_discover_gives_dask_arrays_of_the_same_bytes(self, blocked_ensemble):
        array = da.from_array(blocked_ensemble[0], chunks=(5, 700, 4))
        truth = vd.discover(array, trace=True)
        whole = vd.discover(blocked_ensemble[0], trace=True)
        assert isinstance(truth.probs, da.Array)
        assert truth.probs.chunks == ((700, 700, 700, 700, 200), (4,))
        computed = dask.compute(*(getattr(truth, name) for name in (*FIELDS, "trace")), scheduler="threads")
        for name, values in zip((*FIELDS, "trace"), computed, strict=True):
            assert np.array_equal(values, getattr(whole, name)), name
            assert getattr(truth, name).dtype == values.dtype

    def test_nothing_is_computed_before_it_is_asked_for(self):
        def fail(block):
            raise AssertionError("computed")

        array = da.zeros((5, 3000, 4), chunks=CHUNKS, dtype=np.float32).map_blocks(fail, dtype=np.float32)
        fitted = vd.Temperature().fit(*labelled_ensemble(500))
        assert vd.discover(array).hv.shape == (3000,)
        assert fitted.predict_proba(array).shape == (3000, 4)

    @pytest.mark.parametrize("method", ["temperature", "ptde", "log-pool"])
    def test_calibrators_give_dask_arrays(self, blocked_ensemble, method):
        fitted = vd.fit_calibrator(*labelled_ensemble(500, seed=1), method=method).calibrator
        array = da.from_array(blocked_ensemble[0], chunks=CHUNKS)
        lazy = fitted.predict_proba(array), fitted.predict_confidence(array), fitted.predict(array)
        whole = fitted.predict_all(blocked_ensemble[0])
        for values, expected in zip(dask.compute(*lazy, scheduler="threads"), whole, strict=True):
            assert values.dtype == expected.dtype
            np.testing.assert_allclose(values, expected, atol=2e-7)
        assert isinstance(vd.apply_calibrator(fitted, array).probs, da.Array)

    def test_sources_on_the_second_axis(self, blocked_ensemble):
        array = da.from_array(blocked_ensemble[0].swapaxes(0, 1), chunks=(600, 5, 4))
        truth = vd.discover(array, sources_axis=1)
        assert np.array_equal(truth.hv.compute(scheduler="threads"), vd.discover(blocked_ensemble[0]).hv)

    @pytest.mark.parametrize("chunks", [(2, 500, 4), (5, 500, 2)])
    def test_other_chunks_are_put_together_with_a_warning(self, blocked_ensemble, chunks):
        array = da.from_array(blocked_ensemble[0], chunks=chunks)
        with pytest.warns(errors.RechunkWarning, match=r"moves up to .* GB between workers"):
            truth = vd.discover(array)
        assert np.array_equal(truth.hv.compute(scheduler="threads"), vd.discover(blocked_ensemble[0]).hv)

    def test_bad_arrays_are_rejected(self, blocked_ensemble):
        array = da.from_array(blocked_ensemble[0], chunks=CHUNKS)
        with pytest.raises(errors.ShapeError, match="shape"):
            vd.discover(array[0])
        with pytest.raises(errors.ShapeError, match="unknown size"):
            vd.discover(array[:, array[0, :, 0] > 0.5])
        with pytest.raises(errors.ParameterError, match="leave it out for arrays"):
            vd.evaluate(*blocked_ensemble, client=object())
        with pytest.raises(errors.LabelError, match="labels"):
            vd.evaluate(array)


def test_calibrators_match_the_sources_of_blocks_by_name(tmp_path, blocked_ensemble):
    probs, labels = blocked_ensemble
    names = [f"source {s}" for s in range(len(probs))]
    calibrator = vd.PTDE(combine="log-pool").fit(vd.Predictions(probs, labels, source_names=names))
    reversed_order = vd.Predictions(probs[::-1], source_names=names[::-1])
    opened = scale.open(vd.save(reversed_order, tmp_path / "p.zarr"))
    expected = calibrator.predict_all(reversed_order)[0]
    np.testing.assert_array_equal(calibrator.predict_proba(scale.to_dask(opened)).compute(), expected)


class TestCluster:
    def test_truth_vectors_equal_local_ones(self, client, blocked_ensemble, opened):
        truth = vd.discover(scale.to_dask(opened))
        whole = vd.discover(blocked_ensemble[0])
        for name, future in zip(FIELDS, client.compute([getattr(truth, name) for name in FIELDS]), strict=True):
            assert np.array_equal(future.result(), getattr(whole, name)), name

    def test_evaluation_is_that_of_one_process(self, client, blocked_ensemble, opened):
        local = vd.evaluate(opened)
        assert vd.evaluate(opened, client=client).to_dict() == local.to_dict()
        array = da.from_array(blocked_ensemble[0], chunks=(5, 321, 4))
        assert vd.evaluate(array, blocked_ensemble[1], client=client).to_dict() == local.to_dict()

    def test_calibrators_are_fitted_and_scored_on_the_cluster(self, client, opened):
        methods = ["mean", "temperature", "isotonic"]
        local = vd.evaluate(opened, methods=methods, floors=False)
        assert vd.evaluate(opened, methods=methods, floors=False, client=client).to_dict() == local.to_dict()

    def test_workers_write_the_result(self, client, opened, tmp_path):
        fitted = vd.Temperature().fit(*labelled_ensemble(500, seed=1))
        for target in ("result.zarr", "result.npz", "result"):
            scale.apply_calibrator(fitted, opened, out=tmp_path / target, client=client)
            (tmp_path / "local").mkdir(exist_ok=True)
            scale.apply_calibrator(fitted, opened, out=tmp_path / "local" / target)
            blocked_files = [tmp_path / target] if target.endswith("npz") else sorted((tmp_path / target).rglob("*"))
            for file in blocked_files:
                other = tmp_path / "local" / file.relative_to(tmp_path)
                assert file.is_dir() or file.read_bytes() == other.read_bytes()

    def test_kernels_use_one_thread(self, client):
        assert client.submit(resolve_threads, None, pure=False).result() == 1
        assert client.submit(resolve_threads, 2, pure=False).result() == 2
        assert resolve_threads(None) == len(os.sched_getaffinity(0))

    def test_bad_number_names_the_sample_of_the_whole(self, client, blocked_ensemble, tmp_path):
        probs = blocked_ensemble[0].copy()
        probs[3, 2222, 0] = np.nan
        np.save(tmp_path / "bad.npy", probs)
        opened = scale.open(tmp_path / "bad.npy", blocked_ensemble[1], block_memory=BLOCK_MEMORY)
        with pytest.raises(errors.NotFiniteError, match="source 3, sample 2222"):
            vd.evaluate(opened, client=client)
        with pytest.raises(errors.NotFiniteError, match="source 3, sample 2222"):
            client.compute(vd.discover(scale.to_dask(opened)).hv).result()
        fitted = vd.Temperature().fit(*labelled_ensemble(500))
        with pytest.raises(errors.NotFiniteError, match="source 3, sample 2222"):
            scale.apply_calibrator(fitted, opened, out=tmp_path / "result.zarr", client=client)
        assert not (tmp_path / "result.zarr").exists()

    def test_arrays_in_memory_have_no_workers(self, client, blocked_ensemble):
        with pytest.raises(errors.ParameterError, match="workers read predictions from a file"):
            vd.evaluate(scale.open(*blocked_ensemble), client=client)


def test_data_are_read_by_the_workers(tmp_path, monkeypatch, client):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(100), (5, 8_000)).astype(np.float32)
    labels = probs[0].argmax(axis=1)
    array = zarr.create_array(
        str(tmp_path / "probs.zarr"), shape=probs.shape, chunks=(5, 1000, 100), dtype="float32", compressors=None
    )
    array[...] = probs
    received, from_frames = [0], tcp.from_frames

    async def counting(frames, *arguments, **options):
        received[0] += sum(memoryview(frame).nbytes for frame in frames)
        return await from_frames(frames, *arguments, **options)

    def bytes_read():
        with open("/proc/self/io") as file:
            return int(file.readline().split()[1])

    monkeypatch.setattr(tcp, "from_frames", counting)
    before = bytes_read()
    opened = scale.open(tmp_path / "probs.zarr", labels, block_memory=4 << 20)
    evaluation = vd.evaluate(opened, methods=["mean", "atde"], floors=False, client=client)
    hv = client.compute(vd.discover(scale.to_dask(opened)).hv).result()
    assert evaluation["mean"].summary.n_samples == len(hv) == 8_000
    assert received[0] > len(hv) * 4  # what is asked for does come
    assert received[0] < probs.nbytes / 10
    assert bytes_read() - before < probs.nbytes / 10


def wait_for(path, block, block_info=None):
    """The block, once a file exists; the first half of the samples at once."""
    first = block_info[0]["array-location"][1][0]
    (path.parent / f"started-{os.getpid()}").touch()
    while first >= 1500 and not path.exists():
        time.sleep(0.02)
    return block


def test_killed_worker_changes_nothing(blocked_ensemble, tmp_path):
    flag = tmp_path / "continue"
    with cluster_of(2) as client:
        array = da.from_array(blocked_ensemble[0], chunks=(5, 250, 4))
        slow = array.map_blocks(lambda block, block_info=None: wait_for(flag, block, block_info), dtype=np.float32)
        truth = vd.discover(slow)
        futures = client.compute([getattr(truth, name) for name in FIELDS])
        deadline = time.monotonic() + 60
        pids = []
        while len(pids) < 2 and time.monotonic() < deadline:
            pids = [int(path.name.partition("-")[2]) for path in tmp_path.glob("started-*")]
            time.sleep(0.02)
        assert len(pids) == 2
        os.kill(pids[0], signal.SIGKILL)
        flag.touch()
        results = client.gather(futures)
    whole = vd.discover(blocked_ensemble[0])
    for name, values in zip(FIELDS, results, strict=True):
        assert np.array_equal(values, getattr(whole, name)), name


def fill_memory(block):
    """Take more memory than the worker may use, and keep it for a while."""
    taken = np.ones(1 << 27)
    time.sleep(60)
    return block * taken[0]


def test_worker_out_of_memory_has_a_clear_message(blocked_ensemble):
    with cluster_of(1, memory_limit="600MB", allowed_failures=0) as client:
        large = da.zeros((50, 1000, 2000), chunks=(50, 1000, 2000), dtype=np.float32)
        with pytest.raises(
            errors.WorkerError, match=r"samples 0 to 999 take 400 MB .* this Dask worker may use 600 MB"
        ):
            vd.evaluate(large, np.zeros(1000, int), methods=["mean"], client=client)
        dying = da.from_array(blocked_ensemble[0], chunks=CHUNKS).map_blocks(
            fill_memory, dtype=np.float32, meta=blocked_ensemble[0][:0]
        )
        with pytest.raises(errors.WorkerError, match="too little memory"):
            vd.evaluate(dying, blocked_ensemble[1], methods=["mean"], client=client)


def test_workers_option_starts_a_cluster(store, tmp_path):
    done = veridical("evaluate", store, "--workers", "2", "--methods", "mean,atde", "--json")
    assert done.returncode == 0, done.stderr
    local = vd.evaluate(scale.open(store), methods=["mean", "atde"])
    summary = json.loads(done.stdout)["methods"][0]["summary"]
    assert summary["nll"]["value"] == local["mean"].summary["nll"].value


def test_dask_is_not_imported_without_need():
    program = "import veridical as vd, numpy as np, sys; vd.discover(np.full((2, 3, 2), 0.5)); "
    program += (
        "vd.scale.discover(np.full((2, 3, 2), 0.5)); print([m for m in ('dask', 'distributed') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
