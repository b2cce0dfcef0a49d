"""The ablations that a capture can switch: what each stands for, how it is done, and when it does nothing.

Paper rows are those of Table 4 of the PyTorch 2 paper (ASPLOS 2024); how the authors switched each row off is not
published in detail, so `reading` states what we take the row to mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

from analyzer.errors import UsageError
from analyzer.model import StrEnum

INDUCTOR = "torch._inductor.config."


class Layer(StrEnum):
    """Where an ablation shows first, and so where its postcondition is read."""

    FX = "F"
    LOWERING = "L"
    SCHEDULING = "S"
    CODE = "C"


@dataclass(frozen=True, slots=True)
class Setting:
    """One knob of torch: dotted key in full, Python literal as text, torch versions that have it (until: exclusive)."""

    key: str
    value: str
    since: tuple[int, int] | None = None
    until: tuple[int, int] | None = None

    def exists_in(self, version: tuple[int, int]) -> bool:
        """Whether a torch version, as (major, minor), has this knob."""
        return (self.since is None or self.since <= version) and (self.until is None or version < self.until)


@dataclass(frozen=True, slots=True)
class Ablation:
    """One entry of the registry.

    `row`: the paper's row, or None. `settings` and `switches` (run-time switches of the capture hook) are what the
    ablated arm gets; `baseline` is what both arms get, because the feature is off by default. `needs`: what a program
    must have for the ablation to find anything. `ignored_when`: situations in which torch drops it without a word.
    """

    name: str
    summary: str
    reading: str
    layer: Layer
    settings: tuple[Setting, ...] = ()
    switches: tuple[str, ...] = ()
    baseline: tuple[Setting, ...] = ()
    row: str | None = None
    needs: str = ""
    ignored_when: tuple[str, ...] = ()


SWITCHES = (
    "inlining",
    "fusion",
    "vertical-fusion",
    "horizontal-fusion",
    "decompositions",
    "kernel-grouping",
)
"""What the hook can do at run time (analyzer/capture/inside/inductor_audit_inside/switches.py)."""


def _set(key: str, value: str, since: tuple[int, int] | None = None, until: tuple[int, int] | None = None) -> Setting:
    return Setting(key if key.startswith("torch.") else INDUCTOR + key, value, since, until)


_NO_FUSION = _set("max_fusion_size", "1")
_AUTOTUNE = _set("max_autotune", "True")
_FREEZE = _set("freezing", "True")

ABLATIONS: tuple[Ablation, ...] = (
    Ablation(
        name="inlining",
        summary="realize every lowered value: no FX op is computed inside another buffer's loop body",
        reading="every op gets a buffer in lowering; the scheduler may fuse them again",
        row="without inlining",
        layer=Layer.LOWERING,
        switches=("inlining",),
        needs="a chain of pointwise or reduction ops",
        ignored_when=("the graph comes from a warm cache: a run-time switch is in no cache key",),
    ),
    Ablation(
        name="fusion",
        summary="one scheduler node per group",
        reading="no two scheduler nodes share a kernel; pointwise ops inlined in lowering stay inlined",
        row="without fusion",
        layer=Layer.SCHEDULING,
        settings=(_NO_FUSION,),
        switches=("fusion",),
        needs="at least two scheduler nodes",
        ignored_when=("foreach ops and combo kernels group their nodes all the same",),
    ),
    Ablation(
        name="inlining+fusion",
        summary="realize every lowered value and fuse none of them",
        reading="one loop nest per op",
        row="without fusion and inlining",
        layer=Layer.SCHEDULING,
        settings=(_NO_FUSION,),
        switches=("inlining", "fusion"),
        needs="at least two ops",
        ignored_when=("foreach ops and combo kernels group their nodes all the same",),
    ),
    Ablation(
        name="realize-thresholds",
        summary="both realize thresholds at 0, meant to switch inlining off",
        reading="an attempt at the row 'without inlining' by configuration alone",
        layer=Layer.LOWERING,
        settings=(_set("realize_reads_threshold", "0"), _set("realize_opcount_threshold", "0")),
        needs="values with several users or several reads",
        ignored_when=(
            "a value has a single user: reuse is not asked about",
            "the op count is at most 100: the limit is clamped (not in torch 2.5)",
            "a value over the read limit has one nontrivial read: the hint to realize is declined",
        ),
    ),
    Ablation(
        name="vertical-fusion",
        summary="never fuse a node with one that reads what it writes",
        reading="producer and consumer stay in separate groups",
        layer=Layer.SCHEDULING,
        switches=("vertical-fusion",),
        needs="a scheduler node that reads another one's buffer",
    ),
    Ablation(
        name="horizontal-fusion",
        summary="never fuse nodes that are independent of each other",
        reading="groups are connected by producer and consumer edges",
        layer=Layer.SCHEDULING,
        switches=("horizontal-fusion",),
        needs="independent scheduler nodes over the same range",
        ignored_when=("siblings join one group through a producer or consumer that they share",),
    ),
    Ablation(
        name="epilogue-fusion",
        summary="no pointwise op is fused into a matmul template",
        reading="templates store their result, and the epilogue is a kernel of its own",
        layer=Layer.SCHEDULING,
        settings=(_set("epilogue_fusion", "False"),),
        baseline=(_AUTOTUNE, _FREEZE),
        needs="a matmul that a template computes, followed by a pointwise op",
        ignored_when=(
            "no template was chosen",
            "a pattern has put the epilogue into the op itself (mkldnn._linear_pointwise)",
        ),
    ),
    Ablation(
        name="prologue-fusion",
        summary="no pointwise op is fused into the inputs of a matmul template",
        reading="what a template reads is stored first",
        layer=Layer.SCHEDULING,
        settings=(_set("prologue_fusion", "False", since=(2, 7)),),
        baseline=(_AUTOTUNE,),
        needs="a matmul template with a pointwise input, on a GPU",
        ignored_when=("CPU: templates never take a prologue", "torch before 2.7 has no prologue fusion"),
    ),
    Ablation(
        name="loop-layout-reordering",
        summary="keep loop orders and memory layouts as traced",
        reading="no choice of loop order, no channels-last layout, no reordering for locality",
        row="without loop/layout reordering",
        layer=Layer.LOWERING,
        settings=(
            _set("pick_loop_orders", "False"),
            _set("layout_optimization", "False"),
            _set("reorder_for_locality", "False"),
            _set("loop_ordering_after_fusion", "False"),
            _set("loop_index_inversion_in_fusion", "False", since=(2, 11)),
            _set("loop_reindexing_after_fusion", "False", since=(2, 13)),
        ),
        needs="transposed accesses, or a convolution",
        ignored_when=(
            "CPU: the knobs about loops after fusion do nothing",
            "no convolution in the graph: layouts are not optimized anyway",
            "training: reorder_for_locality is for inference only",
        ),
    ),
    Ablation(
        name="layout-optimization",
        summary="convolutions keep contiguous layouts",
        reading="the layout half of the row 'without loop/layout reordering'",
        layer=Layer.LOWERING,
        settings=(_set("layout_optimization", "False"),),
        needs="a convolution",
        ignored_when=("force_layout_optimization is set", "the graph has no convolution"),
    ),
    Ablation(
        name="matmul-templates",
        summary="only library matmuls compete",
        reading="no Triton or C++ template computes a matmul",
        row="without matmul templates",
        layer=Layer.LOWERING,
        settings=(_set("max_autotune_gemm_backends", "'ATEN'"),),
        baseline=(_AUTOTUNE, _FREEZE),
        needs="a matmul that a template computes in the baseline",
        ignored_when=(
            "CPU: the weight is no constant (needs freezing under no_grad)",
            "GPU with fewer than 68 SMs: templates are not considered",
            "the library kernel wins the benchmark anyway",
        ),
    ),
    Ablation(
        name="parameter-freezing",
        summary="weights stay graph inputs",
        reading="no constant folding and no prepacking of weights",
        row="without parameter freezing",
        layer=Layer.FX,
        settings=(_set("freezing", "False"),),
        baseline=(_FREEZE,),
        needs="a module with parameters, compiled under torch.no_grad()",
        ignored_when=("gradients are enabled: the baseline freezes nothing", "weights are passed as inputs"),
    ),
    Ablation(
        name="pattern-matching",
        summary="no graph rewrites by the pattern matcher",
        reading="FX ops reach lowering as decomposed",
        row="without pattern matching",
        layer=Layer.FX,
        settings=(_set("pattern_matcher", "False"),),
        needs="ops that match a pattern (linear with bias, attention, ...)",
        ignored_when=(
            "no-op removal, uniform constants, reinplacing, random ops and reorder_for_locality run regardless",
        ),
    ),
    Ablation(
        name="cudagraphs",
        summary="kernels are launched from Python",
        reading="no CUDA graph is recorded",
        row="without cudagraphs",
        layer=Layer.CODE,
        settings=(_set("triton.cudagraphs", "False"),),
        baseline=(_set("triton.cudagraphs", "True"),),
        needs="a GPU",
        ignored_when=("CPU: there are never graphs", "the baseline skips graphs: mutated inputs, CPU tensors"),
    ),
    Ablation(
        name="constant-folding",
        summary="constants are not folded in the joint graph",
        reading="ops on uniform tensors stay in the graph",
        layer=Layer.FX,
        settings=(_set("joint_graph_constant_folding", "False"),),
        needs="ops on constant tensors",
    ),
    Ablation(
        name="decompositions",
        summary="an empty decomposition table",
        reading="every op is lowered as it is, or falls back to its eager kernel",
        layer=Layer.FX,
        switches=("decompositions",),
        needs="ops with decompositions (layer_norm, gelu, ...)",
        ignored_when=("the op has a lowering of its own",),
    ),
    Ablation(
        name="joint-graph-passes",
        summary="no passes over the joint graph",
        reading="neither patterns nor folding before forward and backward are split",
        layer=Layer.FX,
        settings=(_set("use_joint_graph_passes", "False", since=(2, 11)),),
        needs="ops that a joint pass rewrites (attention)",
        ignored_when=("torch before 2.11 has no such knob",),
    ),
    Ablation(
        name="cse",
        summary="no common subexpression elimination before partitioning",
        reading="equal FX nodes are kept apart",
        layer=Layer.FX,
        settings=(_set("torch._functorch.config.cse", "False"),),
        needs="a training graph with repeated subexpressions",
        ignored_when=("inference graphs are not partitioned", "subexpressions inside a kernel have no switch"),
    ),
    Ablation(
        name="dead-node-elimination",
        summary="the scheduler keeps nodes that nobody reads",
        reading="dead operations stay in the IR",
        layer=Layer.SCHEDULING,
        settings=(_set("use_dce", "False", since=(2, 11)),),
        needs="a dead operation after lowering",
        ignored_when=("torch before 2.11 has no such knob",),
    ),
    Ablation(
        name="index-propagation",
        summary="constants and indices are not propagated into loop bodies",
        reading="bodies compute indices as ordinary values",
        layer=Layer.LOWERING,
        settings=(_set("constant_and_index_propagation", "False"),),
        needs="iota, masks or index arithmetic",
    ),
    Ablation(
        name="buffer-reuse",
        summary="no buffer takes over a dead one's memory",
        reading="each buffer is allocated for itself",
        layer=Layer.CODE,
        settings=(_set("allow_buffer_reuse", "False"),),
        needs="a buffer that dies before an equal one is made",
        ignored_when=("in-place updates go on: that is inplace-buffers",),
    ),
    Ablation(
        name="inplace-buffers",
        summary="no kernel writes its result over its input",
        reading="no in_out_ptr parameters",
        layer=Layer.CODE,
        settings=(_set("inplace_buffers", "False"),),
        needs="a pointwise kernel that is the last reader of a buffer",
    ),
    Ablation(
        name="memory-planning",
        summary="buffers come out of pools (switched ON)",
        reading="the wrapper allocates pools instead of buffers",
        layer=Layer.CODE,
        settings=(_set("memory_planning", "True"),),
        needs="several intermediate buffers",
        ignored_when=("training graphs are not planned",),
    ),
    Ablation(
        name="peak-memory-reordering",
        summary="scheduler nodes keep their order",
        reading="no reordering to lower peak memory",
        layer=Layer.SCHEDULING,
        settings=(_set("reorder_for_peak_memory", "False", since=(2, 7)),),
        needs="nodes whose order is free",
        ignored_when=("torch before 2.7 has no such knob",),
    ),
    Ablation(
        name="vectorization",
        summary="scalar C++ loops",
        reading="no at::vec in CPU kernels",
        layer=Layer.CODE,
        settings=(_set("cpp.simdlen", "1"),),
        needs="CPU kernels that are vectorized in the baseline",
        ignored_when=("GPU kernels",),
    ),
    Ablation(
        name="split-reductions",
        summary="a reduction is one kernel",
        reading="no two-step reductions",
        layer=Layer.LOWERING,
        settings=(_set("split_reductions", "False"),),
        needs="a large reduction on a GPU",
        ignored_when=("CPU: reductions are never split this way", "cooperative reductions replace the split"),
    ),
    Ablation(
        name="reduction-unrolling",
        summary="small reductions stay reductions",
        reading="reductions over few elements are not unrolled into pointwise code",
        layer=Layer.LOWERING,
        settings=(_set("unroll_reductions_threshold", "1"),),
        needs="a reduction over 2 to 7 elements",
    ),
    Ablation(
        name="cat-as-pointwise",
        summary="a concatenation is never a pointwise kernel",
        reading="cat copies each input into its slice",
        layer=Layer.LOWERING,
        settings=(_set("max_pointwise_cat_inputs", "0"), _set("force_pointwise_cat", "False", since=(2, 7))),
        needs="a cat that the baseline lowers as pointwise",
    ),
    Ablation(
        name="combo-kernels",
        summary="independent kernels are combined into one (switched ON)",
        reading="horizontal packing beyond fusion",
        layer=Layer.SCHEDULING,
        settings=(_set("combo_kernels", "True"),),
        needs="independent kernels on a GPU",
        ignored_when=("CPU nodes are skipped (up to torch 2.9 code generation fails on them)",),
    ),
    Ablation(
        name="padding",
        summary="no padding of strides and shapes",
        reading="layouts stay dense",
        layer=Layer.LOWERING,
        settings=(_set("comprehensive_padding", "False"), _set("shape_padding", "False")),
        needs="odd inner sizes on a GPU",
        ignored_when=("CPU: padding is off without a GPU input",),
    ),
    Ablation(
        name="kernel-grouping",
        summary="the C++ backend writes one function per scheduler node",
        reading="consecutive CPU groups do not share a function",
        layer=Layer.CODE,
        switches=("kernel-grouping",),
        needs="two consecutive CPU groups",
        ignored_when=("GPU kernels",),
    ),
    Ablation(
        name="lowerings",
        summary="every op falls back to its eager kernel (a lower bound)",
        reading="Inductor generates no kernels",
        layer=Layer.LOWERING,
        settings=(_set("fallback_by_default", "True", since=(2, 11)),),
        ignored_when=("torch before 2.11 has no such knob",),
    ),
)
"""In the order in which they are listed to users."""


def find(name: str) -> Ablation:
    """The ablation of a name. UsageError, with the nearest names, for one that does not exist."""
    for ablation in ABLATIONS:
        if ablation.name == name:
            return ablation
    names = [ablation.name for ablation in ABLATIONS]
    near = get_close_matches(name, names, n=3, cutoff=0.65)
    hint = f"Did you mean {' or '.join(near)}?" if near else "`inductor-audit ablations` lists them all."
    raise UsageError(f"unknown ablation: {name}", hint)
