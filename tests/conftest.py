"""What several test files share: hand-made facts about the founding example, and how views are printed."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from analyzer.facts import (
    BufferFact,
    Evidence,
    Fate,
    GraphFacts,
    GroupFact,
    KernelFact,
    NodeFact,
    Storage,
    Summary,
)
from analyzer.model import (
    Artifact,
    ArtifactState,
    CacheState,
    CompiledGraph,
    Dep,
    DumpNode,
    FxNode,
    Layout,
    Run,
    RunnableScript,
    SourceSite,
)

ROOT = Path(__file__).parent.parent
VECTOR = Layout("FixedLayout", "", "cpu", "torch.float32", (1000,), (1,), 0)


def printed(view: RenderableType, width: int = 80, **settings: object) -> str:
    """A view's text at a width, as a file gets it; spaces at line ends do not count."""
    console = Console(file=StringIO(), width=width, **settings)  # type: ignore[arg-type]
    console.print(view)
    return "".join(f"{line.rstrip()}\n" for line in console.file.getvalue().splitlines())  # type: ignore[attr-defined]


@pytest.fixture(scope="session")
def show() -> Callable[..., str]:
    return printed


@pytest.fixture(scope="session")
def golden() -> Callable[[str], str]:
    return lambda name: (ROOT / "tests/goldens" / name).read_text(encoding="utf-8")


def op(name: str, target: str, line: int) -> FxNode:
    site = SourceSite("/home/user/demo.py", line, "model", f"y = torch.{name}(x)")
    return FxNode(name, "call_function", target, source=site)


def whole(file: str, lines: int) -> Artifact:
    return Artifact(file, ArtifactState.PARSED, lines)


@pytest.fixture
def sin_cos() -> GraphFacts:
    """sin(cos(x)) over 1000 floats: cos computed inside buf0, which sin owns and the graph returns."""
    kernel = "cpp_fused_cos_sin_0"
    runnable = RunnableScript(
        whole("fx_graph_runnable.py", 60),
        "2.13.0",
        {
            "torch._inductor.config.realize_reads_threshold": "0",
            "torch._inductor.config.realize_opcount_threshold": "0",
            "torch._inductor.config.trace.enabled": "True",
            "torch._functorch.config.unlift_effect_tokens": "True",
        },
    )
    artifacts = (whole("ir_pre_fusion.txt", 24), whole("output_code.py", 116), runnable.artifact)
    reads = Dep("MemoryDep", "arg0_1", "c0", (("c0", 1000),))
    writes = Dep("MemoryDep", "buf0", "c0", (("c0", 1000),))
    return GraphFacts(
        CompiledGraph(
            "model__0_inference_0.0", "inference", "base/model__0_inference_0.0", artifacts, runnable=runnable
        ),
        nodes=(
            NodeFact(FxNode("arg0_1", "placeholder", "arg0_1"), Fate.INPUT),
            NodeFact(
                op("cos", "aten.cos.default", 8),
                Fate.INLINED,
                inlined_into=("buf0",),
                kernels=(kernel,),
                source_ops=("y",),
                evidence=Evidence.ALIGNMENT,
            ),
            NodeFact(
                op("sin", "aten.sin.default", 9),
                Fate.REALIZED,
                "buf0",
                kernels=(kernel,),
                source_ops=("sin",),
                evidence=Evidence.PROVENANCE,
            ),
        ),
        buffers=(
            BufferFact(
                "buf0",
                "op0",
                "ComputedBuffer",
                VECTOR,
                4000,
                "sin",
                ("cos", "sin"),
                ("OUTPUT",),
                Storage.OUTPUT,
                group="op0",
                kernel=kernel,
                evidence=Evidence.PROVENANCE,
            ),
        ),
        scheduler_nodes=(DumpNode("op0", "SchedulerNode", ("ComputedBuffer",), (writes,), (), (reads, reads)),),
        groups=(GroupFact("op0", "SchedulerNode", ("op0",), ("buf0",), kernel),),
        kernels=(
            KernelFact(
                kernel,
                "cpp",
                (1,),
                1,
                ("op0",),
                ("buf0",),
                ("cos", "sin"),
                ("y", "sin"),
                1,
                4000,
                4000,
                Evidence.COMMENT,
            ),
        ),
        summary=Summary(2, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1, 0, 4000, 4000, 4000),
    )


@pytest.fixture
def cold_run(sin_cos: GraphFacts) -> Run:
    return Run("base", (sin_cos.graph,), "2.13.0+cpu", CacheState.COLD)
