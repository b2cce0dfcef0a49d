"""Why a dump is there, and yet wrong, incomplete or surprising."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby

from analyzer.artifacts.trace_log import CacheEvent, TraceLog
from analyzer.compare.effective import Source, effective_config
from analyzer.contracts.whole_run import break_place, break_reason, recompile_reason
from analyzer.doctor.nothing import CAPTURE
from analyzer.doctor.records import Cause, Level
from analyzer.doctor.scene import Scene
from analyzer.doctor.variables import is_unknown, nearest
from analyzer.load.locate import ARTIFACT_NAMES
from analyzer.model import Artifact, ArtifactState, CompiledGraph
from analyzer.version import at_least
from analyzer.words import counted

OLDEST, NEWEST = (2, 5), (2, 15)
"""The torch versions that the analyzer knows."""

_NUMBERED = re.compile(r"model__.*\.(\d{1,6})")
_DUMPS = ("ir_pre_fusion.txt", "ir_post_fusion.txt")


def _graphs(scene: Scene) -> tuple[CompiledGraph, ...]:
    return scene.run.graphs if scene.run is not None else ()


def torch_too_old(scene: Scene) -> Iterator[str]:
    """Formats before the first version that is known."""
    version = scene.run.torch_version if scene.run is not None else None
    if version is not None and version[:1].isdigit() and not at_least(version, OLDEST):
        yield f"the run was made by torch {version}; formats before {OLDEST[0]}.{OLDEST[1]} are read as far as they go"


def torch_too_new(scene: Scene) -> Iterator[str]:
    """Formats after the last version that is known."""
    version = scene.run.torch_version if scene.run is not None else None
    if version is not None and at_least(version, (NEWEST[0], NEWEST[1] + 1)):
        yield f"the run was made by torch {version}; the newest that is known is {NEWEST[0]}.{NEWEST[1]}"


def damaged_files(scene: Scene) -> Iterator[str]:
    """Files that are cut short, empty, or not what Inductor writes."""
    for graph in _graphs(scene):
        for artifact in graph.artifacts:
            if artifact.state in (ArtifactState.PARTIAL, ArtifactState.UNSUPPORTED) and artifact.problems:
                problem = artifact.problems[0]
                yield f"{graph.name}/{artifact.file}:{problem.location.line}: {problem.message}"
            elif _is_cut_to_nothing(graph, artifact):
                yield f"{graph.name}/{artifact.file} is empty"


def _is_cut_to_nothing(graph: CompiledGraph, artifact: Artifact) -> bool:
    """Dumps are rightly empty for a graph without kernels, and where control flow has overwritten them."""
    if artifact.state is not ArtifactState.EMPTY:
        return False
    if artifact.file not in _DUMPS:
        return True
    calls = graph.code is not None and next(graph.code.calls(), None) is not None
    return calls and not graph.overwritten


def files_left_out(scene: Scene) -> Iterator[str]:
    """The output code is there, so the dumps were written once."""
    for graph in _graphs(scene):
        gone = [one.file for one in graph.artifacts if one.state is ArtifactState.MISSING and _was_written(one)]
        if graph.code is not None and graph.trace is None and gone:
            yield f"{graph.name}: {', '.join(gone)} not among the files, though Inductor writes them before the code"


def _was_written(artifact: Artifact) -> bool:
    return artifact.file in _DUMPS and "before the output code" in (artifact.cause or "")


def graphs_left_out(scene: Scene) -> Iterator[str]:
    """A log has the code of graphs without folders, while others have one.

    A retry after a failure leaves the folder of its last attempt alone.
    """
    folders = [graph for graph in _graphs(scene) if _number(graph) is not None]
    found = {graph.trace.aot_id for graph in folders if graph.trace is not None}
    if _one_was_asked_for(scene) or not folders or any(graph.trace is None for graph in folders):
        return
    for compile_ in scene.compiles:
        for graph in compile_.graphs if compile_.cache is not CacheEvent.HIT else ():
            if graph.output_code is not None and graph.aot_id not in found:
                name = graph.aot_id or graph.index
                yield f"the log has graph {name} of compile {graph.key}, which has no folder here"


def numbers_missing(scene: Scene) -> Iterator[str]:
    """Where no log tells: every compile of a process makes a folder with the next number, and so do its forks."""
    graphs = () if scene.traces or _one_was_asked_for(scene) else _graphs(scene)
    for process, mine in groupby(graphs, key=lambda graph: graph.process):
        numbers = {number for graph in mine if (number := _number(graph)) is not None}
        gone = set(range(max(numbers, default=0))) - numbers
        if gone:
            of = f" of {process}" if process else ""
            yield f"folders{of} end in {_dotted(numbers)}: {_dotted(gone)} {'is' if len(gone) == 1 else 'are'} not here"


def _one_was_asked_for(scene: Scene) -> bool:
    """Whether the path is a graph folder, whose siblings are nobody's business."""
    return any(len(path.parts) == 1 and path.name in ARTIFACT_NAMES for path in scene.files)


def _dotted(numbers: Iterable[int]) -> str:
    return ", ".join(f".{number}" for number in sorted(numbers))


def _number(graph: CompiledGraph) -> int | None:
    """The count at the end of a folder's name (torch/_inductor/debug.py: `DebugContext.create_debug_dir`)."""
    match = _NUMBERED.fullmatch(graph.name) if graph.pre is not None or graph.code is not None else None
    return int(match[1]) if match else None


def overwritten(scene: Scene) -> Iterator[str]:
    """Inductor writes the dumps of branches and loop bodies over those of the graph around them."""
    for graph in _graphs(scene):
        if graph.overwritten:
            yield f"{graph.name}: the dumps are those of {', '.join(graph.overwritten)}, written over the graph's own"


def options_ignored(scene: Scene) -> Iterator[str]:
    """What the capture was asked for was not in force when a graph was compiled."""
    yield from scene.findings("setting-failed", "switch-failed")
    wanted = scene.run.manifest.settings if scene.run is not None and scene.run.manifest is not None else {}
    for graph in _graphs(scene):
        config = effective_config(graph)
        for key, value in wanted.items() if config.source is not Source.NONE else ():
            found = config.value(key)
            if found is not None and found != value:
                yield f"{graph.name}: {key} was {found}, not {value}: the program sets it itself"


def unknown_variables(scene: Scene) -> Iterator[str]:
    """Variables that no version of torch reads; torch itself says nothing about them."""
    scripts = [graph.runnable for graph in _graphs(scene) if graph.runnable is not None]
    for name in dict.fromkeys(name for script in scripts for name in script.environment):
        if is_unknown(name):
            near = nearest(name)
            yield f"torch reads no variable {name}" + (f"; there is {near}" if near else "")


def provenance_off(scene: Scene) -> Iterator[str]:
    """Torch 2.7 and later can say which op became which kernel, and was told not to."""
    version = scene.run.torch_version if scene.run is not None else None
    for graph in _graphs(scene):
        known = graph.provenance is not None or graph.sidecar is not None
        if version is None or not at_least(version, (2, 7)) or known or graph.code is None:
            continue
        if graph.kind != "backward":
            yield f"{graph.name}: no provenance record, so ops are matched with kernels by structure alone"


def compiled_elsewhere(scene: Scene) -> Iterator[str]:
    """Dynamo ran in one process, Inductor in another (torch/_inductor/compile_fx_subproc.py)."""
    traced = [log for log in scene.traces if not log.graphs and _frames(log)]
    for log in scene.traces if traced else ():
        if log.graphs and not _frames(log):
            traced_by = f"process {log.pid} compiled what process {traced[-1].pid} traced"
            yield f"{traced_by}: what the program replaces in torch is not replaced there"


def _frames(log: TraceLog) -> bool:
    return any(compile_.key.frame_id is not None for compile_ in log.compiles)


def no_backward(scene: Scene) -> Iterator[str]:
    """A forward graph keeps values for a backward graph, which is compiled at the call of backward()."""
    kinds = Counter((graph.process, graph.kind) for graph in _graphs(scene) if not _one_was_asked_for(scene))
    for (process, kind), number in kinds.items():
        lacking = number - kinds[process, "backward"]
        if kind == "forward" and lacking > 0:
            yield (
                f"no backward graph for {lacking} of {counted(number, 'forward graph')}: backward() was not called, "
                f"or the folder is not here"
            )


def older_runs(scene: Scene) -> Iterator[str]:
    """Only the newest launch is read."""
    older = scene.run.older if scene.run is not None else ()
    if older:
        yield f"beside the one that was read: {counted(len(older), 'older run')}, {', '.join(older[-3:])}"


def graph_breaks(scene: Scene) -> Iterator[str]:
    """Dynamo cut a function in two, so there are more and smaller graphs."""
    for compile_ in scene.compiles:
        for text in compile_.graph_breaks:
            place = break_place(text)
            where = f"{place.file}:{place.line}: " if place is not None else ""
            yield f"{where}{break_reason(text)}"


def ran_uncompiled(scene: Scene) -> Iterator[str]:
    """Dynamo gave a frame up, such as at its recompile limit, and says so in its metrics alone."""
    for compile_ in scene.compiles:
        reasons = [metrics.get("fail_reason") for metrics in compile_.metrics]
        given_up = next((reason for reason in reasons if isinstance(reason, str) and reason.strip()), None)
        if given_up is not None and not compile_.graphs and not compile_.errors:
            yield f"compile {compile_.key}: {given_up.strip().splitlines()[0]}"


def recompiles(scene: Scene) -> Iterator[str]:
    """A function was compiled again because its guards failed, so it has several graphs."""
    for compile_ in scene.compiles:
        if compile_.recompile_reasons:
            yield f"compile {compile_.key}: {recompile_reason(compile_)}"


WRONG = (
    Cause("damaged files", damaged_files, "copy the debug folder again, or capture anew: these files are not whole"),
    Cause("files left out", files_left_out, "copy the whole graph folder, not single files of it"),
    Cause("graphs left out", graphs_left_out, "copy the whole torchinductor folder, with every graph folder in it"),
    Cause(
        "options ignored", options_ignored, "remove the assignment in the program, or set the option where it is made"
    ),
    Cause(
        "unknown variable",
        unknown_variables,
        "set the option with `inductor-audit capture --set KEY=VALUE`, which checks it",
    ),
    Cause(
        "dumps overwritten", overwritten, "capture with `inductor-audit capture`: it records every subgraph by itself"
    ),
    Cause("torch too old", torch_too_old, f"capture with torch {OLDEST[0]}.{OLDEST[1]} or later"),
    Cause("torch too new", torch_too_new, "update inductor-audit", Level.NOTE),
    Cause("provenance off", provenance_off, f"{CAPTURE}; by hand, INDUCTOR_PROVENANCE=1", Level.NOTE),
    Cause(
        "old run beside a new one", older_runs, "name the run_* folder that you mean, or delete the others", Level.NOTE
    ),
    Cause(
        "numbers missing",
        numbers_missing,
        "copy the whole torchinductor folder, unless the process was forked from one that had compiled them",
        Level.NOTE,
    ),
    Cause(
        "compiled in another process",
        compiled_elsewhere,
        "unset TORCHINDUCTOR_FX_COMPILE_MODE, so that the program's own process compiles",
        Level.NOTE,
    ),
    Cause(
        "no backward graph",
        no_backward,
        "call backward() on the result, or the model under torch.no_grad() where gradients are not wanted",
        Level.NOTE,
    ),
    Cause(
        "ran uncompiled",
        ran_uncompiled,
        "mend what is told, or raise torch._dynamo.config.recompile_limit when it is that limit",
        Level.NOTE,
    ),
    Cause("graph breaks", graph_breaks, "mend the first one, or pass fullgraph=True to see it as an error", Level.NOTE),
    Cause("recompiles", recompiles, "call with the same shapes and types, or pass dynamic=True", Level.NOTE),
)
"""In order of importance."""
