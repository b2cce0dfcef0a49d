"""One interface, the same results: local, a Slurm executor's local form, and a Dask cluster on this machine."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from analyzer.errors import UsageError
from analyzer.lab.engines import LocalEngine, make_engine, parse_option

sys.path.insert(0, str(Path(__file__).parent))

import lab_work


@pytest.fixture(autouse=True)
def importable_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `pip install` does for the analyzer itself."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))


@pytest.mark.parametrize(
    ("engine", "needs", "elsewhere"),
    [("local", "sys", False), ("slurm:local", "submitit", True), ("dask", "distributed", True)],
)
def test_every_engine_gives_the_same_results(tmp_path, engine, needs, elsewhere):
    pytest.importorskip(needs)
    found = make_engine(engine, 2, tmp_path, {}, lambda *_: None)
    results = dict(found.each(lab_work.squared, [1, 2, 13, 4]))
    error = results.pop(13)
    assert isinstance(error, Exception)
    assert "thirteen is no task" in str(error)
    assert {task: value for task, (value, _) in results.items()} == {1: 1, 2: 4, 4: 16}
    assert all((pid != os.getpid()) == elsewhere for _, pid in results.values())


def test_a_cluster_at_an_address(tmp_path):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        engine = make_engine(f"dask:{cluster.scheduler_address}", 1, tmp_path, {}, lambda *_: None)
        ((task, (value, _)),) = engine.each(lab_work.squared, [3])
    assert (task, value) == (3, 9)


@pytest.mark.parametrize(
    ("engine", "options", "message"),
    [("sge", {}, "unknown engine: sge"), ("slurm:local", {"no_such_option": 1}, "does not take these options")],
)
def test_engines_that_are_none(tmp_path, engine, options, message):
    pytest.importorskip("submitit")
    with pytest.raises(UsageError, match=message):
        make_engine(engine, 1, tmp_path, options, lambda *_: None)


def test_leaving_early_stops_what_runs_and_cancels_what_waits():
    engine = LocalEngine(1)
    began = time.monotonic()
    for task, result in engine.each(lab_work.endless, [0, 1, 2]):
        assert (task, result) == (0, 0)
        break
    assert time.monotonic() - began < 5


def test_local_progress_reaches_the_listener():
    seen = []
    engine = LocalEngine(1, lambda task, _: seen.append(task) or (len(seen) > 3 and stop()))

    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(engine.each(lab_work.endless, [7]))
    assert seen == [7] * 4


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("timeout_min=60", ("timeout_min", 60)),
        ("slurm_partition=gpu", ("slurm_partition", "gpu")),
        ("a='x=1'", ("a", "x=1")),
    ],
)
def test_engine_options(text, parsed):
    assert parse_option(text) == parsed


def test_an_engine_option_needs_a_value():
    with pytest.raises(UsageError, match="not an engine option"):
        parse_option("slurm_partition")
