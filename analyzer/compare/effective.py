"""The configuration that was in force when a graph was compiled, and what its source cannot say.

The capture sidecar knows everything. `fx_graph_runnable.py` (torch/_inductor/debug.py) lists what differed from the
import-time defaults; the trace log holds the same text. A setting that neither mentions had its default, or came from
the environment before torch was imported: then its `os.environ` line shows it, and the trace log's
`compilation_metrics` (torch/_dynamo/utils.py, from 2.9 on), which hold every setting at the end of the frame's compile.
They do not hold what `torch.compile(options=...)` set for the compile alone, so the script goes first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from analyzer.artifacts.config_noise import ABOUT_THE_CAPTURE, WRITTEN_BY_TORCH, known_default
from analyzer.artifacts.runnable import meaningful_config
from analyzer.artifacts.trace_records import TraceRecord
from analyzer.model import CompiledGraph, Location, RunnableScript, StrEnum

if TYPE_CHECKING:
    from analyzer.artifacts.sidecar_records import Context, PatchedFunction, Sidecar

INDUCTOR = "torch._inductor.config."
_LOGGED: Mapping[str, str] = {"inductor_config": INDUCTOR, "functorch_config": "torch._functorch.config."}

ENVIRONMENT: Mapping[str, str] = {
    "TORCHINDUCTOR_COMPREHENSIVE_PADDING": "comprehensive_padding",
    "TORCHINDUCTOR_CUDAGRAPHS": "triton.cudagraphs",
    "TORCHINDUCTOR_FREEZING": "freezing",
    "TORCHINDUCTOR_LAYOUT_OPTIMIZATION": "layout_optimization",
    "TORCHINDUCTOR_LOOP_ORDERING_AFTER_FUSION": "loop_ordering_after_fusion",
    "TORCHINDUCTOR_LOOP_REINDEXING_AFTER_FUSION": "loop_reindexing_after_fusion",
    "TORCHINDUCTOR_MAX_AUTOTUNE": "max_autotune",
    "TORCHINDUCTOR_MAX_AUTOTUNE_GEMM": "max_autotune_gemm",
    "TORCHINDUCTOR_MAX_AUTOTUNE_GEMM_BACKENDS": "max_autotune_gemm_backends",
    "TORCHINDUCTOR_MEMORY_PLANNING": "memory_planning",
    "TORCHINDUCTOR_PROLOGUE_FUSION": "prologue_fusion",
}
"""Environment variables that torch/_inductor/config.py reads at import, by the setting that they become."""

HARMLESS = frozenset(
    {
        "torch._dynamo.config.suppress_errors",
        "torch._functorch.config.enable_autograd_cache",
        "torch._inductor.config.compile_threads",
        "torch._inductor.config.force_disable_caches",
        "torch._inductor.config.fx_graph_cache",
        "torch._inductor.config.fx_graph_remote_cache",
    }
)
"""Settings about caches, workers and errors: they change no artifact, so arms may differ in them."""

CAPTURE_KEYS = frozenset(ABOUT_THE_CAPTURE) | frozenset(WRITTEN_BY_TORCH)

OMITTED = (
    "values equal to the default",
    "settings from the environment before torch was imported",
    "custom passes and the choices handler",
    "functions of torch that were replaced at run time",
)
"""What fx_graph_runnable.py leaves out in every version (torch/utils/_config_module.py, `codegen_config`)."""

OMITTED_BY_LOG = ("settings of torch.compile(options=...)", *OMITTED[2:])
"""What the settings in a trace log leave out."""


SWITCH_POINTS: Mapping[str, tuple[str, ...]] = {
    "inlining": ("GraphLowering.", "StorageBox.", "ComputedBuffer."),
    "fusion": ("Scheduler.",),
    "vertical-fusion": ("Scheduler.",),
    "horizontal-fusion": ("Scheduler.",),
    "decompositions": ("select_decomp_table",),
    "kernel-grouping": ("CppScheduling.",),
}
"""Functions of torch, by the start of their names, that a run-time switch may replace."""

_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+")
_SET = re.compile(r"\{[^:]*\}$|(?:frozenset|OrderedSet)\(")
_ITEM = re.compile(r"[^\s,{}()\[\]]+")
_IN_A_CHILD = "TORCHINDUCTOR_FX_COMPILE_MODE"


class Source(StrEnum):
    """Where an effective configuration comes from, best first."""

    CAPTURE = "capture"
    RUNNABLE = "runnable"
    LOG = "log"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class EffectiveConfig:
    """Settings by full key with the source text of their values; what is not in `settings` had its default.

    `places` tell where each is written, `file` where it would be; `patched` are the functions of torch that something
    outside torch had replaced: None when nothing recorded it. `logged`: a trace log lists every setting, so what
    is not in `settings` had its default.
    """

    source: Source
    file: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, Location] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    patched: tuple[PatchedFunction, ...] | None = None
    torch_version: str | None = None
    omits: tuple[str, ...] = ()
    logged: bool = False

    def value(self, key: str) -> str | None:
        """The value of a setting, its default where that is known, else None. Short keys are Inductor's."""
        full = full_key(key)
        return self.settings.get(full, known_default(full, self.torch_version))

    @property
    def lists_everything(self) -> bool:
        """Whether settings at their default are listed too."""
        return self.source is Source.CAPTURE or _IN_A_CHILD in self.environment

    def requested_by_environment(self, key: str) -> str | None:
        """The variable that asks for this setting, where there is one.

        It is in force only if it was set before torch was imported; the artifacts do not say when.
        """
        names = (name for name, setting in ENVIRONMENT.items() if setting == short_key(full_key(key)))
        return next((name for name in names if name in self.environment), None)


def full_key(key: str) -> str:
    """`max_fusion_size` → `torch._inductor.config.max_fusion_size`; full keys stay."""
    return key if key.startswith("torch.") else INDUCTOR + key


def short_key(key: str) -> str:
    """The key as `torch._inductor.config` knows it; keys of other modules stay full."""
    return key.removeprefix(INDUCTOR)


def effective_config(graph: CompiledGraph) -> EffectiveConfig:
    """What was in force when this graph was compiled, from the best sources that the run has."""
    if graph.sidecar is not None and graph.sidecar.context is not None:
        return _from_sidecar(graph.sidecar, graph.sidecar.context, graph.runnable)
    record = graph.trace.metrics if graph.trace is not None else None
    logged = dict(_logged(record)) if record is not None else {}
    if graph.runnable is not None and (graph.runnable.config or graph.runnable.torch_version):
        found = _from_runnable(graph.runnable)
        return _completed(found, logged, record.location) if record is not None and logged else found
    if record is not None and logged:
        found = EffectiveConfig(Source.LOG, record.location.file, omits=OMITTED_BY_LOG)
        return _completed(found, logged, record.location)
    return EffectiveConfig(Source.NONE, omits=("everything: no fx_graph_runnable.py and no capture record",))


def _from_sidecar(sidecar: Sidecar, context: Context, runnable: RunnableScript | None) -> EffectiveConfig:
    """Everything: all settings, and which functions of torch the ablation's switches had replaced."""
    known = {key: value for key, value in context.settings.items() if key not in HARMLESS | CAPTURE_KEYS}
    return EffectiveConfig(
        Source.CAPTURE,
        runnable.artifact.file if runnable and runnable.config_lines else sidecar.artifact.file,
        known,
        _places(runnable) if runnable else {},
        context.environment,
        tuple(context.patched),
        sidecar.torch,
    )


def _from_runnable(runnable: RunnableScript) -> EffectiveConfig:
    return EffectiveConfig(
        Source.RUNNABLE,
        runnable.artifact.file,
        {key: value for key, value in meaningful_config(runnable).items() if key not in HARMLESS},
        _places(runnable),
        runnable.environment,
        torch_version=runnable.torch_version,
        omits=OMITTED,
    )


def _places(runnable: RunnableScript) -> dict[str, Location]:
    return {key: Location(runnable.artifact.file, line) for key, line in runnable.config_lines.items()}


def _completed(config: EffectiveConfig, logged: Mapping[str, str], place: Location) -> EffectiveConfig:
    """With what the log says of the settings that the script does not list, where that is not the default."""
    added = {
        key: value
        for key, value in logged.items()
        if key not in config.settings and known_default(key, config.torch_version) not in (None, value)
    }
    places = dict.fromkeys(added, place) | dict(config.places)
    return replace(config, settings={**added, **config.settings}, places=places, logged=True)


def _logged(record: TraceRecord) -> Iterator[tuple[str, str]]:
    """The settings as Python writes their values."""
    for field_name, prefix in _LOGGED.items():
        for name, value in _object(record.fields.get(field_name)).items():
            if prefix + name not in HARMLESS | CAPTURE_KEYS:
                yield prefix + name, repr(value)


def _object(text: object) -> dict[str, object]:
    try:
        found = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


@dataclass(frozen=True, slots=True)
class ConfigDifference:
    """A setting with different values in the two arms; None: at its default, which is not known."""

    key: str
    base: str | None
    ablated: str | None

    def __str__(self) -> str:
        return f"{short_key(self.key)}: {self.base or 'default'} -> {self.ablated or 'default'}"


def _canonical(value: str | None) -> str | None:
    """A value without what differs from process to process: addresses, and the order in which a set prints."""
    if value is None:
        return None
    value = _ADDRESS.sub("0x", value)
    return str(sorted(_ITEM.findall(value))) if _SET.match(value) else value


def config_differences(base: EffectiveConfig, ablated: EffectiveConfig) -> tuple[ConfigDifference, ...]:
    """Settings in which two compiles differ, in order of their names; empty when one side is not known at all.

    A compile in a child process (TORCHINDUCTOR_FX_COMPILE_MODE) is handed every setting, defaults included, and lists
    them all: there only a value that both sides know can differ. The same holds for a capture beside a plain folder.
    """
    if Source.NONE in (base.source, ablated.source):
        return ()
    keys = sorted(set(base.settings) | set(ablated.settings))
    both = (ConfigDifference(key, base.value(key), ablated.value(key)) for key in keys)
    found = (difference for difference in both if _canonical(difference.base) != _canonical(difference.ablated))
    if base.lists_everything == ablated.lists_everything:
        return tuple(found)
    return tuple(difference for difference in found if None not in (difference.base, difference.ablated))
