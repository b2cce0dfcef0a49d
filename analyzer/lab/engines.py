"""Where the tasks of an experiment run: on this machine, on a Slurm cluster, or on a Dask cluster.

All engines run the same function on the same tasks and give the same results; folders must be on a file system that
every machine sees.
"""

from __future__ import annotations

import ast
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from analyzer.errors import UsageError
from analyzer.lab.records import OnStep, Step

Task = TypeVar("Task")
Result = TypeVar("Result")
Tick = Callable[[Any, Step], None]
_POLL_S = 0.3
_MINUTES = 240
"""Of a Slurm job, unless said otherwise: submitit's own limit of five is less than many captures take."""


class Engine(Protocol):
    """Runs `work(task)` on each task and yields (task, result or exception), in the order in which they end.

    `work` takes a second argument, a callback for progress: an engine that can listen passes one, which may raise
    KeyboardInterrupt to stop the work.
    """

    def each(self, work: Callable[..., Result], tasks: Sequence[Task]) -> Iterator[tuple[Task, Result | Exception]]:
        """Leaving the iteration early, as Ctrl-C does, ends or cancels what is still running."""


def make_engine(name: str, jobs: int, state: Path, options: Mapping[str, Any], tick: Tick) -> Engine:
    """`local`, `slurm`, `slurm:CLUSTER`, `dask` or `dask:ADDRESS`. UsageError for others and for missing packages."""
    kind, _, where = name.partition(":")
    if kind == "local" and not where:
        return LocalEngine(jobs, tick)
    if kind == "slurm":
        return SlurmEngine(where or None, state, options)
    if kind == "dask":
        return DaskEngine(where or None, jobs)
    raise UsageError(f"unknown engine: {name}", "Choose local, slurm[:CLUSTER] or dask[:ADDRESS].")


def parse_option(text: str) -> tuple[str, Any]:
    """`KEY=VALUE` for an engine; a value that is no Python literal is text. UsageError without an equals sign."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"not an engine option: {text!r}", "Write KEY=VALUE, such as slurm_partition=cpu.")
    try:
        return key.strip(), ast.literal_eval(value)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return key.strip(), value


def _outcome(ask: Callable[[], Result]) -> Result | Exception:
    try:
        return ask()
    except Exception as error:  # noqa: BLE001 - whatever a machine far away raises belongs to that one task
        return error


class LocalEngine:
    """Some tasks at a time, each in a thread: the work itself is a captured process of its own."""

    def __init__(self, jobs: int = 1, tick: Tick | None = None) -> None:
        self.jobs = jobs
        self._tick = tick
        self._stop = threading.Event()

    def each(self, work: Callable[..., Result], tasks: Sequence[Task]) -> Iterator[tuple[Task, Result | Exception]]:
        """Ctrl-C stops the captures through their progress calls, within a fraction of a second."""
        with ThreadPoolExecutor(self.jobs) as pool:
            futures: dict[Future[Result], Task] = {
                pool.submit(work, task, self._progress(task)): task for task in tasks
            }
            try:
                for future in as_completed(futures):
                    yield futures[future], _outcome(future.result)
            finally:
                self._stop.set()
                pool.shutdown(wait=True, cancel_futures=True)
                self._stop.clear()

    def _progress(self, task: Any) -> OnStep:
        def progress(seen: Step) -> None:
            if self._stop.is_set():
                raise KeyboardInterrupt
            if self._tick is not None:
                self._tick(task, seen)

        return progress


class SlurmEngine:
    """Jobs of a cluster through submitit; `options` are its parameters (`slurm_partition`, `timeout_min`, ...)."""

    def __init__(self, cluster: str | None, state: Path, options: Mapping[str, Any]) -> None:
        try:
            import submitit  # noqa: PLC0415 - an optional extra
        except ImportError as error:
            raise UsageError("submitit is not installed", "pip install 'inductor-audit[slurm]'") from error
        self._executor = submitit.AutoExecutor(folder=str(state / "submitit"), cluster=cluster)
        try:
            self._executor.update_parameters(**{"name": "inductor-audit", "timeout_min": _MINUTES, **options})
        except (NameError, TypeError, ValueError, AssertionError) as error:
            raise UsageError(f"submitit does not take these options: {error}") from error

    def each(self, work: Callable[..., Result], tasks: Sequence[Task]) -> Iterator[tuple[Task, Result | Exception]]:
        """Submits all, then asks for those that ended."""
        with _importable_there():
            waiting = [(self._executor.submit(work, task), task) for task in tasks]
        try:
            while waiting:
                ended = [(job, task) for job, task in waiting if job.done()]
                for job, task in ended:
                    yield task, _outcome(job.result)
                waiting = [pair for pair in waiting if pair not in ended]
                time.sleep(_POLL_S if waiting else 0)
        finally:
            for job, _ in waiting:
                job.cancel()


class DaskEngine:
    """Tasks of a Dask cluster: the scheduler at an address, or a cluster of processes on this machine."""

    def __init__(self, address: str | None, jobs: int) -> None:
        try:
            import distributed  # noqa: PLC0415 - an optional extra
        except ImportError as error:
            raise UsageError("dask.distributed is not installed", "pip install 'inductor-audit[dask]'") from error
        self._dask = distributed
        self._address = address
        self._jobs = jobs

    def each(self, work: Callable[..., Result], tasks: Sequence[Task]) -> Iterator[tuple[Task, Result | Exception]]:
        """A cluster of our own lives as long as the iteration."""
        with _importable_there(), self._client() as client:
            futures = {client.submit(work, task, pure=False): task for task in tasks}
            try:
                for future in self._dask.as_completed(list(futures)):
                    yield futures[future], _outcome(future.result)
            finally:
                client.cancel([future for future in futures if not future.done()])

    @contextmanager
    def _client(self) -> Iterator[Any]:
        if self._address is not None:
            try:
                client = self._dask.Client(self._address, timeout=30)
            except (OSError, ValueError, TypeError) as error:
                raise UsageError(f"no Dask scheduler at {self._address}: {error}") from error
            with client:
                yield client
            return
        options = {"n_workers": self._jobs, "threads_per_worker": 1, "dashboard_address": None}
        with self._dask.LocalCluster(**options) as cluster, self._dask.Client(cluster) as client:
            yield client


@contextmanager
def _importable_there() -> Iterator[None]:
    """Processes that a cluster starts on our behalf find this package also when it runs out of a checkout."""
    root = str(Path(__file__).resolve().parents[2])
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = root if not before else before + os.pathsep + root
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before
