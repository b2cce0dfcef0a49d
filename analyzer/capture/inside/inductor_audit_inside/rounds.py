"""Serves the laboratory after the script's end: rounds of calls, and comparisons with another arm's outputs.

One JSON object a line over a Unix socket; the laboratory's end of it is `analyzer/lab/workers.py`. The process ends
when the other side closes.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Sequence
from typing import Any

from inductor_audit_inside.compare import compare, signature
from inductor_audit_inside.replay import RecordedGraph

Json = dict[str, Any]


def serve(path: str, graphs: Sequence[RecordedGraph], seed: int) -> None:
    """Answers until the other side closes. A request that fails is answered with its error; so are later ones."""
    import torch

    answers: dict[str, Callable[[Json], Any]] = {
        "warm_up": lambda _: _warm_up(graphs),
        "round": lambda _: {graph.name: graph.round() for graph in graphs},
        "export": lambda ask: _export(ask["file"], graphs, seed),
        "check": lambda ask: _check(ask["file"], graphs, seed),
    }
    with socket.socket(socket.AF_UNIX) as line, torch.no_grad():
        line.connect(path)
        stream = line.makefile("rw", encoding="utf-8")
        _say(stream, {"graphs": [{"name": graph.name, "calls": graph.calls} for graph in graphs]})
        for text in stream:
            ask = json.loads(text)
            try:
                _say(stream, {"answer": answers[ask["do"]](ask)})
            except Exception as error:  # noqa: BLE001 - the laboratory is told, and decides
                _say(stream, {"error": f"{type(error).__name__}: {error}"[:500]})


def _say(stream: Any, answer: Json) -> None:
    stream.write(json.dumps(answer) + "\n")
    stream.flush()


def _warm_up(graphs: Sequence[RecordedGraph]) -> None:
    for graph in graphs:
        graph.warm_up()


def _export(file: str, graphs: Sequence[RecordedGraph], seed: int) -> None:
    """Inputs and outputs of every graph, for the other arms to compare with."""
    import torch

    found = {}
    for graph in graphs:
        torch.manual_seed(seed)
        found[graph.name] = {"inputs": graph.pristine, "outputs": list(graph.outputs(graph.pristine))}
    torch.save(found, file)


def _check(file: str, graphs: Sequence[RecordedGraph], seed: int) -> Json:
    """Each graph's outputs beside the other arm's, on the other arm's inputs where they fit."""
    import torch

    known = torch.load(file, weights_only=True)
    found: Json = {}
    for graph in graphs:
        if graph.name in known:
            inputs, whose = _inputs(graph, known[graph.name]["inputs"])
            torch.manual_seed(seed)
            outputs = graph.outputs(inputs)
            result = compare(outputs, known[graph.name]["outputs"])
            found[graph.name] = {**result, "inputs": whose}
    return found


def _inputs(graph: RecordedGraph, theirs: Sequence[Any]) -> tuple[Sequence[Any], str]:
    """A backward graph's inputs are what its own forward saved: the same shapes may mean other values."""
    if signature(graph.pristine) != signature(theirs):
        return graph.pristine, "own"
    if "backward" in graph.name and not compare(graph.pristine, theirs)["close"]:
        return graph.pristine, "own"
    return theirs, "same"
