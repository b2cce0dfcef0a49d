"""A live process per arm that makes rounds of calls on request (its side: capture/inside/.../rounds.py)."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from analyzer.capture import CaptureRequest, CaptureResult, Progress, capture
from analyzer.errors import AnalyzerError

_POLL_S = 0.1
_ENDING_S = 15.0


class WorkerError(Exception):
    """An arm that cannot be measured (any more); the message says why."""


class Worker:
    """Captures an arm once more in a thread; its process connects when the script has ended, and then serves."""

    def __init__(self, request: Callable[[Mapping[str, Any]], CaptureRequest], path: Path, timeout: float) -> None:
        """`request` makes the capture out of what is asked of the process; `path`: of the socket, at most 100 bytes."""
        self._timeout = timeout
        self._stop = threading.Event()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(1)
        self._line: socket.socket | None = None
        self._stream: Any = None
        self._ended: CaptureResult | AnalyzerError | None = None
        self._thread = threading.Thread(target=self._capture, args=(request({"socket": str(path)}),), daemon=True)
        self._thread.start()

    def _capture(self, request: CaptureRequest) -> None:
        try:
            self._ended = capture(request, self._watch)
        except AnalyzerError as error:
            self._ended = error

    def _watch(self, _: Progress) -> None:
        if self._stop.is_set():
            raise KeyboardInterrupt

    def connect(self, tick: Callable[[], None]) -> dict[str, int]:
        """Waits for the script's end: the graphs that it called, and how often. WorkerError when it cannot serve."""
        self._listener.settimeout(_POLL_S)
        deadline = time.monotonic() + self._timeout
        while self._line is None:
            tick()
            try:
                self._line, _ = self._listener.accept()
            except TimeoutError:
                if not self._thread.is_alive():
                    raise WorkerError(self._why_ended()) from None
                if time.monotonic() > deadline:
                    raise WorkerError(f"the script did not end within {self._timeout:.0f} s") from None
        self._line.settimeout(self._timeout)
        self._stream = self._line.makefile("rw", encoding="utf-8")
        return {graph["name"]: int(graph["calls"]) for graph in self._hear()["graphs"]}

    def _why_ended(self) -> str:
        if isinstance(self._ended, CaptureResult) and self._ended.findings:
            return f"no measurable process: {self._ended.findings[0].message}"
        if isinstance(self._ended, AnalyzerError):
            return str(self._ended)
        return "the script ended without serving: it called no compiled graph, or left by os._exit"

    def ask(self, what: str, **details: str) -> Any:
        """The answer to one request. WorkerError when the process fails at it, dies, or takes too long."""
        try:
            self._stream.write(json.dumps({"do": what, **details}) + "\n")
            self._stream.flush()
            answer = self._hear()
        except (OSError, ValueError) as error:
            raise WorkerError(f"the process failed in {what}: {error or type(error).__name__}") from error
        if "error" in answer:
            raise WorkerError(f"{what} failed: {answer['error']}")
        return answer["answer"]

    def _hear(self) -> dict[str, Any]:
        text = self._stream.readline()
        found = json.loads(text) if text else None
        if not isinstance(found, dict):
            raise OSError("the process is gone")
        return found

    def hang_up(self) -> None:
        """Closes the line, at which the process ends."""
        for end in (self._stream, self._line, self._listener):
            if end is not None:
                _close(end)
        if self._line is None:
            self._stop.set()

    def close(self) -> None:
        """Hangs up and waits; a process that does not end is ended."""
        self.hang_up()
        self._thread.join(_ENDING_S)
        self._stop.set()
        self._thread.join(_ENDING_S)


def _close(end: Any) -> None:
    try:
        end.close()
    except OSError:  # what was still to be written to a process that is gone
        return
